"""The versions of one item, as they must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from muniment.v1 import version_pb2
from muniment.v1 import version_service_pb2 as pb
from tests.proof.noninterference.model.blocks import Blocks
from tests.proof.noninterference.rules import id_of, key_of, label_of
from tests.proof.noninterference.values import Levels, Refused, Session, Version, join, stamp

_NAME_OF: Mapping[int, Callable[[str], str]] = {1: key_of, 2: id_of, 3: label_of, 4: id_of}
_NOT_FOUND = {1: "MEMORY_NOT_FOUND", 2: "NOTE_NOT_FOUND", 3: "BLOCK_NOT_FOUND", 4: "PASSAGE_NOT_FOUND"}


class Versions(Blocks):
    """VersionService."""

    def _ListVersions(self, session: Session, taint: int, request: pb.ListVersionsRequest) -> Message:
        name = _NAME_OF[request.kind](request.name)
        seen = self._versions_of(session, taint, request, name)
        if not seen:
            raise Refused(_NOT_FOUND[request.kind])
        levels = sorted(seen, key=lambda level: (seen[level].updated, level), reverse=True)
        versions = [_shown(level, seen[level]) for level in levels]
        return pb.ListVersionsResponse(versions=versions, classification=join(versions))

    def _versions_of(self, session: Session, taint: int, request: pb.ListVersionsRequest, name: str) -> Levels:
        agent = session.agent
        if request.kind == 3:
            owners = [
                block.owner
                for block in self.blocks_of(session, taint)
                if block.label == name and request.owner_agent_id in ("", block.owner)
            ]
            return self.seen(self.agents[session.tenant, owners[0]].blocks, name, taint) if owners else {}
        if request.owner_agent_id not in ("", agent.shown.agent_id):
            return {}
        return self.seen({1: agent.memories, 2: agent.notes, 4: agent.passages}[request.kind], name, taint)


def _shown(level: int, version: Version) -> version_pb2.ItemVersion:
    classification: Any = level
    return version_pb2.ItemVersion(
        content=version.content,
        tags=version.tags,
        classification=classification,
        etag=version.etag,
        update_time=stamp(version.updated),
        expire_time=stamp(version.expires),
    )
