"""Core blocks, own and shared, as they must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from google.protobuf.message import Message

from muniment.v1 import block_pb2, version_pb2
from muniment.v1 import block_service_pb2 as pb
from tests.proof.noninterference.model.ground import Ground, newer_below
from tests.proof.noninterference.rules import label_of
from tests.proof.noninterference.values import PUBLIC, Agent, Refused, Session, Version, join, labeled, page_size, stamp

_LARGEST = 64 * 1024
FIRST_BLOCKS = {"personality": "", "relationships": "", "current_state": ""}


class Seen(NamedTuple):
    """A block as a session sees it. The order of these is that of a list."""

    label: str
    shared: bool
    owner: str
    level: int
    version: Version
    newer_below: version_pb2.NewerBelow | None


class Blocks(Ground):
    """What sessions do with blocks."""

    def blocks_of(self, session: Session, taint: int) -> list[Seen]:
        """The visible blocks, own and shared, in the order of a list."""
        return sorted(self._readable(session, taint), key=lambda block: block[:3])

    def _readable(self, session: Session, taint: int) -> Iterator[Seen]:
        reader = session.agent
        for (tenant, owner_id), owner in self.agents.items():
            if tenant == session.tenant:
                for label, level, version in self.all_seen(owner.blocks, taint):
                    is_known = owner.shown.known_from <= session.ceiling
                    if owner is reader or (is_known and reader in owner.shared.get(label, ())):
                        newer = newer_below(self.seen(owner.blocks, label, taint))
                        yield Seen(label, owner is not reader, owner_id, level, version, newer)

    def _own(self, session: Session, label: str, taint: int) -> Version | None:
        seen = self.seen(session.agent.blocks, label, taint)
        return seen[max(seen)] if seen else None

    def _write(self, session: Session, label: str, taint: int, content: str, etag: str) -> block_pb2.Block:
        top = self._own(session, label, taint)
        if self._is_stale(etag, top):
            raise Refused("ETAG_STALE")
        versions = session.agent.blocks.setdefault(label, {})
        if taint in versions:
            self._overwrite(versions[taint], content)
        else:
            versions[taint] = self._new(content)
            versions[taint].created = top.created if top else self.now
        owner = session.agent.shown.agent_id
        return _shown(Seen(label, False, owner, taint, versions[taint], None))

    def _ListBlocks(self, session: Session, taint: int, request: pb.ListBlocksRequest) -> Message:
        last = self._last("ListBlocks", request.page_token, (), taint)
        wanted = [block for block in self.blocks_of(session, taint) if last is None or block[:3] > last]
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (), taint, page and page[-1][:3])
        shown = [_shown(block) for block in page]
        return pb.ListBlocksResponse(blocks=shown, next_page_token=more, classification=join(shown))

    def _GetBlock(self, session: Session, taint: int, request: pb.GetBlockRequest) -> Message:
        label = label_of(request.label)
        for block in self.blocks_of(session, taint):
            if block.label == label and request.owner_agent_id in ("", block.owner):
                return pb.GetBlockResponse(block=_shown(block))
        raise Refused("BLOCK_NOT_FOUND")

    def _UpdateBlock(self, session: Session, taint: int, request: pb.UpdateBlockRequest) -> Message:
        label = label_of(request.label)
        return pb.UpdateBlockResponse(block=self._write(session, label, taint, request.content, request.etag))

    def _EditBlock(self, session: Session, taint: int, request: pb.EditBlockRequest) -> Message:
        label = label_of(request.label)
        top = self._own(session, label, taint)
        if top is None:
            raise Refused("BLOCK_NOT_FOUND")
        if self._is_stale(request.etag, top):
            raise Refused("ETAG_STALE")
        content = _edited(top.content, request)
        if len(content.encode()) > _LARGEST:
            raise Refused("BLOCK_TOO_LARGE")
        return pb.EditBlockResponse(block=self._write(session, label, taint, content, ""))

    def _DeleteBlock(self, session: Session, taint: int, request: pb.DeleteBlockRequest) -> Message:
        label = label_of(request.label)
        agent = session.agent
        revealed = self._delete(
            agent.blocks, label, taint, request.etag, not_found="BLOCK_NOT_FOUND", deleted=agent.deleted[3]
        )
        return pb.DeleteBlockResponse(**revealed)


class Sharing(Ground):
    """What hosts do with blocks. It has no level."""

    def _CreateSharedBlock(self, tenant: str, ceiling: int, request: pb.CreateSharedBlockRequest) -> Message:
        label = label_of(request.label)
        [owner] = self._reached(tenant, ceiling, request.owner_agent_id)
        versions = owner.blocks.get(label, {})
        if label in owner.shared or (request.content and PUBLIC in versions):
            raise Refused("BLOCK_EXISTS")
        owner.shared[label] = []
        if PUBLIC not in versions:
            owner.blocks.setdefault(label, {})[PUBLIC] = self._new(request.content)
        return pb.CreateSharedBlockResponse()

    def _DeleteSharedBlock(self, tenant: str, ceiling: int, request: pb.DeleteSharedBlockRequest) -> Message:
        label = label_of(request.label)
        self._consumers(tenant, ceiling, request.owner_agent_id, label)
        del self._agent(tenant, ceiling, request.owner_agent_id).shared[label]
        return pb.DeleteSharedBlockResponse()

    def _AttachBlock(self, tenant: str, ceiling: int, request: pb.AttachBlockRequest) -> Message:
        label = label_of(request.label)
        if request.agent_id == request.owner_agent_id:
            raise Refused("FIELD_INVALID")
        owner, consumer = self._reached(tenant, ceiling, request.owner_agent_id, request.agent_id)
        consumers = self._consumers(tenant, ceiling, owner.shown.agent_id, label)
        if owner.shown.ceiling > consumer.shown.ceiling:
            raise Refused("AGENT_CEILING_EXCEEDED")
        if consumer not in consumers:
            consumers.append(consumer)
        return pb.AttachBlockResponse()

    def _DetachBlock(self, tenant: str, ceiling: int, request: pb.DetachBlockRequest) -> Message:
        label = label_of(request.label)
        _, consumer = self._reached(tenant, ceiling, request.owner_agent_id, request.agent_id)
        consumers = self._consumers(tenant, ceiling, request.owner_agent_id, label)
        if consumer not in consumers:
            raise Refused("BLOCK_NOT_ATTACHED")
        consumers.remove(consumer)
        return pb.DetachBlockResponse()

    def _ListBlockConsumers(self, tenant: str, ceiling: int, request: pb.ListBlockConsumersRequest) -> Message:
        label = label_of(request.label)
        filters = (request.owner_agent_id, label)
        after = self._last("ListBlockConsumers", request.page_token, filters, 0) or ""
        consumers = self._consumers(tenant, ceiling, request.owner_agent_id, label)
        visible = [one.shown.agent_id for one in consumers if one.shown.ceiling <= ceiling]
        wanted = sorted(agent_id for agent_id in visible if agent_id > after)
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, filters, 0, page and page[-1])
        return pb.ListBlockConsumersResponse(agent_ids=page, next_page_token=more)

    def _consumers(self, tenant: str, ceiling: int, owner_id: str, label: str) -> list[Agent]:
        [owner] = self._reached(tenant, ceiling, owner_id)
        if label not in owner.shared:
            raise Refused("SHARED_BLOCK_NOT_FOUND")
        return owner.shared[label]


def _edited(content: str, request: pb.EditBlockRequest) -> str:
    lines = _lines(content)
    match request.WhichOneof("edit"):
        case "append":
            return _with_lines_between("".join(lines), request.append.content, "")
        case "insert":
            line = request.insert.line
            if line > len(lines):
                raise Refused("LINE_OUT_OF_RANGE")
            return _with_lines_between("".join(lines[:line]), request.insert.content, "".join(lines[line:]))
    old = request.replace.old
    places = [place for place in range(len(content)) if content.startswith(old, place)]
    if len(places) != 1:
        raise Refused("TEXT_NOT_UNIQUE" if places else "TEXT_NOT_FOUND")
    return content[: places[0]] + request.replace.new + content[places[0] + len(old) :]


def _lines(content: str) -> list[str]:
    """Cut after each line feed, and at nothing else that Unicode takes for the end of a line."""
    *whole, rest = content.split("\n")
    return [*(f"{line}\n" for line in whole), *([rest] if rest else [])]


def _with_lines_between(before: str, lines: str, after: str) -> str:
    if before and not before.endswith("\n"):
        before += "\n"
    if after and not lines.endswith("\n"):
        lines += "\n"
    return before + lines + after


def _shown(block: Seen) -> block_pb2.Block:
    return block_pb2.Block(
        owner_agent_id=block.owner,
        label=block.label,
        content=block.version.content,
        shared=block.shared,
        **labeled(block.level),
        etag=block.version.etag,
        create_time=stamp(block.version.created),
        update_time=stamp(block.version.updated),
        newer_below=block.newer_below,
    )
