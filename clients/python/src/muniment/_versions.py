"""Calls for versions of items."""

from __future__ import annotations

from functools import cached_property

from muniment import _convert
from muniment._calls import Calls
from muniment._listing import Listing
from muniment.v1 import version_pb2
from muniment.v1 import version_service_pb2 as pb
from muniment.v1.version_service_pb2_grpc import VersionServiceStub
from muniment.values import Classification, ItemKind, ItemVersion, VersionPage


class Versions:
    """The versions of an item, as one session sees them."""

    _calls: Calls

    @cached_property
    def _versions(self) -> VersionServiceStub:
        return VersionServiceStub(self._calls.channel)

    def list_versions(
        self,
        kind: ItemKind,
        name: str,
        *,
        owner_agent_id: str | None = None,
        with_revisions: bool = False,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Listing[ItemVersion]:
        """The version of one item at each visible level, newest first. Other reads show only the highest.

        *name* is the key of a memory, the label of a block, or the id of a note or passage. *owner_agent_id* is for
        blocks of other agents. *with_revisions* adds what each version has `replaced` at its level, except for blocks
        of other agents. *timeout* is for each page. NotFound: no version is visible. TaintChanged: see `Listing.all`.
        """
        return Listing(
            lambda token: self.list_versions_page(
                kind,
                name,
                owner_agent_id=owner_agent_id,
                with_revisions=with_revisions,
                page_size=page_size,
                page_token=token,
                timeout=timeout,
            ),
            lambda page: page.versions,
        )

    def list_versions_page(
        self,
        kind: ItemKind,
        name: str,
        *,
        owner_agent_id: str | None = None,
        with_revisions: bool = False,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> VersionPage:
        """One page, and the highest level in it. A *page_size* of 0 means 50; the most is 250."""
        request = _convert.message(
            pb.ListVersionsRequest,
            kind=_convert.kind_to_proto(kind),
            name=name,
            owner_agent_id=owner_agent_id or "",
            with_revisions=with_revisions,
            page_size=page_size,
            page_token=page_token,
        )
        return _version_page(self._calls(self._versions.ListVersions, request, timeout))


def _version_page(message: pb.ListVersionsResponse) -> VersionPage:
    return VersionPage(
        versions=tuple(map(_version, message.versions)),
        next_page_token=message.next_page_token,
        classification=Classification(message.classification),
        integrity=_convert.integrity(message.integrity),
    )


def _version(message: version_pb2.ItemVersion) -> ItemVersion:
    return ItemVersion(
        content=message.content,
        tags=tuple(message.tags),
        classification=Classification(message.classification),
        etag=message.etag,
        update_time=_convert.utc(message.update_time),
        expire_time=_convert.utc(message.expire_time) if message.HasField("expire_time") else None,
        replaced=message.replaced,
        integrity=_convert.integrity(message.integrity),
    )
