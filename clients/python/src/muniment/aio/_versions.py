# Generated from ../_versions.py: make aio.
"""Calls for versions of items."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from muniment import _convert
from muniment._versions import _version
from muniment.aio._calls import Calls
from muniment.v1 import version_service_pb2 as pb
from muniment.v1.version_service_pb2_grpc import VersionServiceStub
from muniment.values import ItemKind, ItemVersion

if TYPE_CHECKING:
    from muniment.v1.version_service_pb2_grpc import VersionServiceAsyncStub


class Versions:
    """The versions of an item, as one session sees them."""

    _calls: Calls

    @cached_property
    def _versions(self) -> VersionServiceAsyncStub:
        return VersionServiceStub(self._calls.channel)

    async def list_versions(
        self, kind: ItemKind, name: str, *, owner_agent_id: str | None = None, timeout: float | None = None
    ) -> tuple[ItemVersion, ...]:
        """The version of one item at each visible level, newest first. Other reads show only the highest.

        *name* is the key of a memory, the label of a block, or the id of a note or passage. *owner_agent_id* is for
        blocks of other agents. NotFound: no version is visible.
        """
        request = _convert.message(
            pb.ListVersionsRequest, kind=_convert.kind_to_proto(kind), name=name, owner_agent_id=owner_agent_id or ""
        )
        return tuple(map(_version, (await self._calls(self._versions.ListVersions, request, timeout)).versions))
