"""Calls for versions of items."""

from __future__ import annotations

from functools import cached_property

from muniment import _convert
from muniment._calls import Calls
from muniment.v1 import version_pb2
from muniment.v1 import version_service_pb2 as pb
from muniment.v1.version_service_pb2_grpc import VersionServiceStub
from muniment.values import Classification, ItemKind, ItemVersion


class Versions:
    """The versions of an item, as one session sees them."""

    _calls: Calls

    @cached_property
    def _versions(self) -> VersionServiceStub:
        return VersionServiceStub(self._calls.channel)

    def list_versions(
        self, kind: ItemKind, name: str, *, owner_agent_id: str | None = None, timeout: float | None = None
    ) -> tuple[ItemVersion, ...]:
        """The version of one item at each visible level, newest first. Other reads show only the highest.

        *name* is the key of a memory, the label of a block, or the id of a note or passage. *owner_agent_id* is for
        blocks of other agents. NotFound: no version is visible.
        """
        request = _convert.message(
            pb.ListVersionsRequest,
            kind=_convert.kind_to_proto(kind),
            name=name,
            owner_agent_id=owner_agent_id or "",
        )
        return tuple(map(_version, self._calls(self._versions.ListVersions, request, timeout).versions))


def _version(message: version_pb2.ItemVersion) -> ItemVersion:
    return ItemVersion(
        content=message.content,
        tags=tuple(message.tags),
        classification=Classification(message.classification),
        etag=message.etag,
        update_time=_convert.utc(message.update_time),
        expire_time=_convert.utc(message.expire_time) if message.HasField("expire_time") else None,
    )
