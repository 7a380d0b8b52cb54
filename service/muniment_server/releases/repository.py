"""Releases, as one host sees and changes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import Refusal, ReleaseNotFound, ReleaseRightMissing
from muniment_server.domain.ids import HostKeyId
from muniment_server.domain.items import Item, ItemKind, Version
from muniment_server.domain.releases import Release, ReleaseState, hash_of
from muniment_server.monitor.host_scope import HostScope


@dataclass(frozen=True, slots=True)
class _Id:
    release_id: UUID


@dataclass(frozen=True, slots=True)
class _Listed:
    release_id: UUID
    create_time: datetime


@dataclass(frozen=True, slots=True)
class _Key:
    host_key_id: HostKeyId


def require_rights(scope: HostScope, agent_id: str, source: Label, target: Label) -> None:
    """Check that the key may release from *source* to *target*. Raises CeilingExceeded or ReleaseRightMissing."""
    for label in (source, target):
        scope.require_ceiling(label.level, agent_id=agent_id)
    rights = {
        "declassifies": not source.level.can_flow_to(target.level),
        "endorses": not source.integrity.can_flow_to(target.integrity),
    }
    if scope.first("find_release_rights", _Key, **rights) is None:
        scope.refuse(ReleaseRightMissing(), agent_id=agent_id)


def create(
    scope: HostScope, agent_id: str, kind: ItemKind, item: Item, target: Label, *, reason: str, ttl: timedelta
) -> Release:
    """Ask for the release of *item* to *target*. Raises AgentNotFound or AgentAboveCeiling."""
    release_id = scope.new_uuid()
    opened = scope.change(
        "open_release",
        _Id,
        release_id=release_id,
        agent_id=agent_id,
        kind=kind,
        item_id=item.item_id,
        revision=item.revision,
        content_hash=hash_of(item),
        source=item.label.value,
        target=target.value,
        level=item.label.level,
        reason=reason,
        ttl=ttl,
    )
    if opened is None:
        scope.raise_unmanageable(agent_id)
    return get(scope, release_id)


def get(scope: HostScope, release_id: UUID) -> Release:
    """One release. Raises ReleaseNotFound."""
    release = scope.first("get_releases", Release, release_ids=[release_id])
    if release is None:
        raise ReleaseNotFound
    return release


def locked(scope: HostScope, release: Release) -> Release:
    """The release as it is now. Until the transaction ends, no other changes it, and no erasure of its agent begins.

    Raises ReleaseNotFound.
    """
    scope.execute("lock_release", release_id=release.release_id)
    scope.execute("lock_parties", owner_agent_id=release.agent_id, agent_id=release.agent_id)
    return get(scope, release.release_id)


def list_releases(
    scope: HostScope, *, agent_id: str | None, include_closed: bool, before: tuple[datetime, UUID], limit: int
) -> tuple[list[Release], bool]:
    """Up to *limit* releases before *before*, newest first; and whether there are more."""
    found = scope.rows(
        "list_release_ids",
        _Listed,
        agent_id=agent_id,
        include_closed=include_closed,
        before_time=before[0],
        before_id=before[1],
        limit=limit + 1,
    )
    ids = [row.release_id for row in found[:limit] if row is not None]
    releases = scope.rows("get_releases", Release, release_ids=ids) if ids else []
    return [release for release in releases if release is not None], len(found) > limit


def approve(scope: HostScope, release: Release) -> Release:
    """Record that the key approves; return the release as it is then."""
    given = {"release_id": release.release_id, "level": release.source.level}
    scope.execute("approve_release", change_id=scope.new_uuid(), **given)
    return get(scope, release.release_id)


def end(
    scope: HostScope, release: Release, state: ReleaseState, *, written: Version | None = None, reason: str
) -> None:
    """Record that the release is written or rejected, unless it has ended already."""
    scope.execute(
        "end_release",
        change_id=scope.new_uuid(),
        release_id=release.release_id,
        state=state,
        new_item_id=written and written.item_id,
        new_revision=written and written.revision,
        level=(release.target if written else release.source).level,
        reason=reason,
    )


def store_refusal(scope: HostScope, release: Release, refusal: Refusal) -> None:
    """Record why a write was refused."""
    given = {"release_id": release.release_id, "level": release.target.level, "refusal": scope.reason_of(refusal)}
    scope.execute("refuse_release", change_id=scope.new_uuid(), **given)
