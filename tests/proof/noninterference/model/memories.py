"""Keyed memories, as they must be."""

from __future__ import annotations

from google.protobuf.message import Message
from google.rpc import error_details_pb2

from muniment.v1 import memory_pb2
from muniment.v1 import memory_service_pb2 as pb
from tests.proof.noninterference.model.ground import Ground, newer_below, revealed
from tests.proof.noninterference.rules import key_of, prefix_of, tags_of, time_of, words_of
from tests.proof.noninterference.values import (
    ByName,
    Found,
    Levels,
    Refused,
    Session,
    Version,
    join,
    labeled,
    nfc,
    page_size,
    stamp,
)

_RULES = {
    "ETAG_STALE": ("is not the etag of the current version", "etag"),
    "FIELD_INVALID": ("must be in the future", "expire_time"),
}
"""What SaveMemories says of the memories that it refuses."""


class Memories(Ground):
    """MemoryService. A session is asked at its taint."""

    def _SaveMemory(self, session: Session, taint: int, request: pb.SaveMemoryRequest) -> Message:
        _check(request)
        if reason := self._refusal(session.agent.memories, taint, request):
            raise Refused(reason)
        return pb.SaveMemoryResponse(memory=self._save(session.agent.memories, taint, request))

    def _SaveMemories(self, session: Session, taint: int, request: pb.SaveMemoriesRequest) -> Message:
        memories = session.agent.memories
        for one in request.memories:
            _check(one)
        if len({nfc(one.key) for one in request.memories}) < len(request.memories):
            raise Refused("FIELD_INVALID")
        reasons = [self._refusal(memories, taint, one) for one in request.memories]
        if reason := next(filter(None, reasons), ""):
            rule, name = _RULES[reason]
            refused = [f"memories[{place}].{name}" for place, one in enumerate(reasons) if one == reason]
            violation = error_details_pb2.BadRequest.FieldViolation
            violations = [violation(field=field, description=rule) for field in refused]
            raise Refused(reason, error_details_pb2.BadRequest(field_violations=violations[:16]))
        saved = [self._save(memories, taint, one) for one in request.memories]
        return pb.SaveMemoriesResponse(memories=saved, classification=join(saved))

    def _refusal(self, memories: ByName, taint: int, request: pb.SaveMemoryRequest) -> str:
        """Why a memory cannot be saved, or nothing."""
        seen = self.seen(memories, key_of(request.key), taint)
        if self._is_stale(request.etag, seen[max(seen)] if seen else None):
            return "ETAG_STALE"
        expires = time_of(request, "expire_time")
        return "FIELD_INVALID" if expires is not None and expires <= self.now else ""

    def _save(self, memories: ByName, taint: int, request: pb.SaveMemoryRequest) -> memory_pb2.Memory:
        key, tags, expires = key_of(request.key), tags_of(request.tags), time_of(request, "expire_time")
        seen = self.seen(memories, key, taint)
        if taint in seen:
            self._overwrite(seen[taint], request.content, tags, expires)
        else:
            memories.setdefault(key, {})[taint] = self._new(request.content, tags=tags, expires=expires)
        return _shown(key, {taint: memories[key][taint]})

    def _GetMemory(self, session: Session, taint: int, request: pb.GetMemoryRequest) -> Message:
        key = key_of(request.key)
        seen = self.seen(session.agent.memories, key, taint)
        if not seen:
            raise Refused("MEMORY_NOT_FOUND")
        return pb.GetMemoryResponse(memory=_shown(key, seen))

    def _DeleteMemory(self, session: Session, taint: int, request: pb.DeleteMemoryRequest) -> Message:
        agent, key = session.agent, key_of(request.key)
        revealed = self._delete(
            agent.memories, key, taint, request.etag, not_found="MEMORY_NOT_FOUND", deleted=agent.deleted[1]
        )
        return pb.DeleteMemoryResponse(**revealed)

    def _DeleteMemories(self, session: Session, taint: int, request: pb.DeleteMemoriesRequest) -> Message:
        (tag,) = tags_of([request.tag])
        count = self._delete_all(
            session.agent.memories, taint, lambda one: tag in one.tags, deleted=session.agent.deleted[1]
        )
        return pb.DeleteMemoriesResponse(deleted_count=count)

    def _RenameMemory(self, session: Session, taint: int, request: pb.RenameMemoryRequest) -> Message:
        agent, key, new_key = session.agent, key_of(request.key), key_of(request.new_key)
        if key == new_key:
            raise Refused("FIELD_INVALID")
        seen = self.seen(agent.memories, key, taint)
        if taint not in seen:
            raise Refused("WRITE_LEVEL_MISMATCH" if seen else "MEMORY_NOT_FOUND")
        if self._is_stale(request.etag, seen[taint]):
            raise Refused("ETAG_STALE")
        if self.seen(agent.memories, new_key, taint):
            raise Refused("MEMORY_EXISTS")
        version = agent.memories[key].pop(taint)
        if expired := agent.memories.setdefault(new_key, {}).get(taint):
            agent.deleted[1].setdefault((new_key, taint), []).append(expired)
        version.earlier_names.add(key)
        version.revise(self.now)
        agent.memories[new_key][taint] = version
        return pb.RenameMemoryResponse(memory=_shown(new_key, {taint: version}), **revealed(seen, taint))

    def _ListMemories(self, session: Session, taint: int, request: pb.ListMemoriesRequest) -> Message:
        tag, prefix = nfc(request.tag).strip(), prefix_of(request.key_prefix)
        after = self._last("ListMemories", request.page_token, (tag, prefix), taint) or ""
        wanted = [
            _shown(key, self.seen(session.agent.memories, key, taint))
            for key, _, version in self.all_seen(session.agent.memories, taint)
            if key > after and key.startswith(prefix) and (not tag or tag in version.tags)
        ]
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (tag, prefix), taint, page and page[-1].key)
        return pb.ListMemoriesResponse(memories=page, next_page_token=more, classification=join(page))

    def _SearchMemories(self, session: Session, taint: int, request: pb.SearchMemoriesRequest) -> Found:
        words_of(request.query)
        tags, prefix = tags_of(request.tags), prefix_of(request.key_prefix)
        wanted = {
            key: _shown(key, self.seen(session.agent.memories, key, taint))
            for key, _, version in self.all_seen(session.agent.memories, taint)
            if key.startswith(prefix) and tagged(version, tags, any_tag=request.tag_match == 2)
        }
        texts = {key: f"{key} {one.content}" for key, one in wanted.items()}
        return self._found(
            session.agent, request.query, texts, wanted, request.max_results, least=request.min_relevance
        )


def _check(request: pb.SaveMemoryRequest) -> None:
    """What of a memory is checked before it is looked for."""
    key_of(request.key)
    tags_of(request.tags)


def tagged(version: Version, tags: list[str], *, any_tag: bool) -> bool:
    """Whether *version* has the tags that are asked for."""
    if not tags:
        return True
    return bool(set(tags) & set(version.tags)) if any_tag else set(tags) <= set(version.tags)


def _shown(key: str, seen: Levels) -> memory_pb2.Memory:
    level, version = max(seen), seen[max(seen)]
    return memory_pb2.Memory(
        key=key,
        content=version.content,
        tags=version.tags,
        **labeled(level),
        etag=version.etag,
        create_time=stamp(version.created),
        update_time=stamp(version.updated),
        expire_time=stamp(version.expires),
        newer_below=newer_below(seen),
    )
