"""The versions of one item, as they must be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from google.protobuf.message import Message

from muniment.v1 import version_pb2
from muniment.v1 import version_service_pb2 as pb
from tests.proof.noninterference.model.blocks import Blocks
from tests.proof.noninterference.rules import id_of, key_of, label_of
from tests.proof.noninterference.values import Agent, Levels, Refused, Session, Version, join, labeled, page_size, stamp

_NAME_OF: Mapping[int, Callable[[str], str]] = {1: key_of, 2: id_of, 3: label_of, 4: id_of}
_NOT_FOUND = {1: "MEMORY_NOT_FOUND", 2: "NOTE_NOT_FOUND", 3: "BLOCK_NOT_FOUND", 4: "PASSAGE_NOT_FOUND"}


class Versions(Blocks):
    """VersionService."""

    def _ListVersions(self, session: Session, taint: int, request: pb.ListVersionsRequest) -> Message:
        name = _NAME_OF[request.kind](request.name)
        filters = (request.kind, name, request.owner_agent_id, request.with_revisions)
        last = self._last("ListVersions", request.page_token, filters, taint)
        nothing: dict[int, int] = {}
        asked, after = last or (request.owner_agent_id, nothing)
        owner, seen = self._versions_of(session, taint, request.kind, name, asked)
        wanted = [
            _Listed(level, version, replaced=version is not live)
            for level, live in seen.items()
            for version in (
                live,
                *(reversed(live.earlier) if request.with_revisions and owner is session.agent else ()),
            )
            if version.revision < after.get(level, sys.maxsize) and self._lives(version)
        ]
        if not wanted and not last:
            raise Refused(_NOT_FOUND[request.kind])
        in_order = sorted(
            wanted, key=lambda one: (_time_of(one, wanted), one.level, one.version.revision), reverse=True
        )
        page = in_order[: page_size(request.page_size)]
        after = after | {one.level: one.version.revision for one in page}
        more = self._more(len(page) < len(wanted), filters, taint, (owner.shown.agent_id, after))
        shown = list(map(_shown, page))
        return pb.ListVersionsResponse(versions=shown, next_page_token=more, classification=join(shown))

    def _versions_of(self, session: Session, taint: int, kind: int, name: str, owner_id: str) -> tuple[Agent, Levels]:
        """Whose item it is, and its live versions."""
        agent = session.agent
        if kind == 3:
            owners = [
                block.owner
                for block in self.blocks_of(session, taint)
                if block.label == name and owner_id in ("", block.owner)
            ]
            owner = self.agents[session.tenant, owners[0]] if owners else agent
            return owner, self.seen(owner.blocks, name, taint) if owners else {}
        if owner_id not in ("", agent.shown.agent_id):
            return agent, {}
        return agent, self.seen({1: agent.memories, 2: agent.notes, 4: agent.passages}[kind], name, taint)


class _Listed(NamedTuple):
    """A version of a list, or what one has replaced."""

    level: int
    version: Version
    replaced: bool


def _time_of(listed: _Listed, others: Sequence[_Listed]) -> datetime:
    """By which it is listed: never newer than what has replaced it."""
    return min(
        one.version.updated
        for one in others
        if one.level == listed.level and one.version.revision >= listed.version.revision
    )


def _shown(listed: _Listed) -> version_pb2.ItemVersion:
    version = listed.version
    return version_pb2.ItemVersion(
        content=version.content,
        tags=version.tags,
        **labeled(listed.level),
        etag=version.etag,
        update_time=stamp(version.updated),
        expire_time=stamp(version.expires),
        replaced=listed.replaced,
    )
