# Generated from ../_releases.py: make aio.
"""Calls of hosts at the release desk."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from muniment import _convert
from muniment._releases import _release, _replaced, _text
from muniment.aio._calls import Calls
from muniment.aio._listing import Listing
from muniment.v1 import release_service_pb2 as pb
from muniment.v1.release_service_pb2_grpc import ReleaseServiceStub
from muniment.values import Classification, Integrity, ItemKind, Release

if TYPE_CHECKING:
    from muniment.v1.release_service_pb2_grpc import ReleaseServiceAsyncStub


class Releases:
    """The release desk: the only way of a text to a lower level, or to TRUSTED. It takes two keys with the right."""

    _calls: Calls

    @cached_property
    def _releases(self) -> ReleaseServiceAsyncStub:
        return ReleaseServiceStub(self._calls.channel)

    async def request_release(
        self,
        agent_id: str,
        kind: ItemKind,
        name: str | None = None,
        *,
        item_id: str | None = None,
        revision: int = 0,
        content_sha256: str,
        source: tuple[Classification, Integrity],
        target: tuple[Classification, Integrity],
        reason: str = "",
        ttl: timedelta | None = None,
        timeout: float | None = None,
    ) -> Release:
        """Ask for the release of an item from the label *source*, which it has, to the label *target*.

        Give *name*, the key of a memory, the id of a note or passage or the label of a block; or *item_id*. The
        function `content_sha256` makes the hash of the text. A *revision* of 0 is the newest. *reason* is for those who
        approve and for the audit: up to 200 code points, never content. *ttl* is 1 second to 30 days; None means 7
        days. ReleaseRightMissing: the operator has not given the key the right. ReleaseSourceChanged: the item is
        another one.
        """
        _convert.require(source, tuple, "source")
        _convert.require(target, tuple, "target")
        (source_level, source_integrity), (level, integrity) = (source, target)
        request = _convert.message(
            pb.RequestReleaseRequest,
            agent_id=agent_id,
            kind=_convert.kind_to_proto(kind),
            name=name or "",
            item_id=item_id or "",
            revision=revision,
            content_sha256=content_sha256,
            source_classification=_convert.level_to_proto(source_level),
            source_integrity=_convert.integrity_to_proto(source_integrity),
            classification=_convert.level_to_proto(level),
            integrity=_convert.integrity_to_proto(integrity),
            reason=reason,
            ttl=_convert.duration_to_proto(ttl),
        )
        return _release((await self._calls(self._releases.RequestRelease, request, timeout)).release)

    async def approve_release(self, release_id: str, content_sha256: str, *, timeout: float | None = None) -> Release:
        """Approve a release whose text has this hash. The last approval that is needed writes the item.

        The state is OPEN if it needs further ones. The call may be repeated: see the contract. ReleaseOwnRequest: the
        key has asked for it. ReleaseSourceChanged, QuotaExceeded, BudgetExceeded: it was not written, and stays open.
        """
        request = _convert.message(pb.ApproveReleaseRequest, release_id=release_id, content_sha256=content_sha256)
        return _release((await self._calls(self._releases.ApproveRelease, request, timeout)).release)

    async def reject_release(self, release_id: str, reason: str = "", *, timeout: float | None = None) -> Release:
        """Reject a release, or withdraw one's own. *reason* is for the audit. ReleaseNotOpen: it is not open."""
        request = _convert.message(pb.RejectReleaseRequest, release_id=release_id, reason=reason)
        return _release((await self._calls(self._releases.RejectRelease, request, timeout)).release)

    async def get_release(self, release_id: str, *, timeout: float | None = None) -> Release:
        """One release; while it is open, with the text that it would write and the item that it would replace.

        Only the key that asked and keys with the rights see these. ReleaseNotFound: there is no such release.
        """
        request = _convert.message(pb.GetReleaseRequest, release_id=release_id)
        response = await self._calls(self._releases.GetRelease, request, timeout)
        return replace(
            _release(response.release),
            text=_text(response.text) if response.HasField("text") else None,
            replaced=_replaced(response.replaced) if response.HasField("replaced") else None,
        )

    async def list_releases(
        self,
        *,
        agent_id: str | None = None,
        include_closed: bool = False,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Listing[Release]:
        """The open releases, or all, newest first, without texts; pages are fetched as needed."""

        async def fetch(token: str) -> pb.ListReleasesResponse:
            request = _convert.message(
                pb.ListReleasesRequest,
                agent_id=agent_id or "",
                include_closed=include_closed,
                page_size=page_size,
                page_token=token,
            )
            return await self._calls(self._releases.ListReleases, request, timeout)

        return Listing(fetch, lambda page: map(_release, page.releases))
