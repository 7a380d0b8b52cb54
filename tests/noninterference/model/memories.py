"""Keyed memories, as they must be."""

from __future__ import annotations

from google.protobuf.message import Message

from muniment.v1 import memory_pb2
from muniment.v1 import memory_service_pb2 as pb
from tests.noninterference.model.ground import Ground
from tests.noninterference.rules import key_of, tags_of, time_of, words_of
from tests.noninterference.values import Found, Refused, Session, Version, join, nfc, page_size, stamp


class Memories(Ground):
    """MemoryService. A session is asked at its taint."""

    def _SaveMemory(self, session: Session, taint: int, request: pb.SaveMemoryRequest) -> Message:
        key, tags = key_of(request.key), tags_of(request.tags)
        expires = time_of(request, "expire_time")
        memories = session.agent.memories
        seen = self.seen(memories, key, taint)
        if self._is_stale(request.etag, seen[max(seen)] if seen else None):
            raise Refused("ETAG_STALE")
        if expires is not None and expires <= self.now:
            raise Refused("FIELD_INVALID")
        if taint in seen:
            self._overwrite(seen[taint], request.content, tags, expires)
        else:
            memories.setdefault(key, {})[taint] = self._new(request.content, tags=tags, expires=expires)
        return pb.SaveMemoryResponse(memory=_shown(key, taint, memories[key][taint]))

    def _GetMemory(self, session: Session, taint: int, request: pb.GetMemoryRequest) -> Message:
        key = key_of(request.key)
        seen = self.seen(session.agent.memories, key, taint)
        if not seen:
            raise Refused("MEMORY_NOT_FOUND")
        return pb.GetMemoryResponse(memory=_shown(key, max(seen), seen[max(seen)]))

    def _DeleteMemory(self, session: Session, taint: int, request: pb.DeleteMemoryRequest) -> Message:
        agent, key = session.agent, key_of(request.key)
        revealed = self._delete(
            agent.memories, key, taint, request.etag, not_found="MEMORY_NOT_FOUND", deleted=agent.deleted[1]
        )
        return pb.DeleteMemoryResponse(revealed=revealed)

    def _ListMemories(self, session: Session, taint: int, request: pb.ListMemoriesRequest) -> Message:
        tag = nfc(request.tag).strip()
        after = self._last("ListMemories", request.page_token, (tag,), taint) or ""
        wanted = [
            _shown(key, level, version)
            for key, level, version in self.all_seen(session.agent.memories, taint)
            if key > after and (not tag or tag in version.tags)
        ]
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (tag,), taint, page and page[-1].key)
        return pb.ListMemoriesResponse(memories=page, next_page_token=more, classification=join(page))

    def _SearchMemories(self, session: Session, taint: int, request: pb.SearchMemoriesRequest) -> Found:
        words_of(request.query)
        tags = tags_of(request.tags)
        wanted = {
            key: _shown(key, level, version)
            for key, level, version in self.all_seen(session.agent.memories, taint)
            if tagged(version, tags, any_tag=request.tag_match == 2)
        }
        texts = {key: f"{key} {one.content}" for key, one in wanted.items()}
        return self._found(session.agent, request.query, texts, wanted, request.max_results)


def tagged(version: Version, tags: list[str], *, any_tag: bool) -> bool:
    """Whether *version* has the tags that are asked for."""
    if not tags:
        return True
    return bool(set(tags) & set(version.tags)) if any_tag else set(tags) <= set(version.tags)


def _shown(key: str, level: int, version: Version) -> memory_pb2.Memory:
    return memory_pb2.Memory(
        key=key,
        content=version.content,
        tags=version.tags,
        classification=level,  # type: ignore[arg-type]  # a number of the enum
        etag=version.etag,
        create_time=stamp(version.created),
        update_time=stamp(version.updated),
        expire_time=stamp(version.expires),
    )
