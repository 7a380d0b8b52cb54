"""How a release is requested, approved, written and rejected.

An item is read as a session with its label reads it, and written as a session with the new label writes it: these are
two transactions, and what is recorded of the release is a third. A change of the source that commits between the read
and the write counts as later than the release. An erasure does not: it ends the session that writes, and none begins
while it lasts.

The audit event of the write has the id of the release. A call that finds an unfinished write first ends its session, so
that the write has been committed or never will be, and then looks for that event. So the next call finishes what a
killed one began, and nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import (
    AgentCeilingExceeded,
    Conflict,
    FieldViolation,
    InvalidArgument,
    Refusal,
    ReleaseExpired,
    ReleaseHashMismatch,
    ReleaseNotOpen,
    ReleaseOwnRequest,
    ReleaseRightMissing,
    ReleaseSourceChanged,
    StaleSession,
    Unavailable,
)
from muniment_server.domain.ids import ItemId, SessionId
from muniment_server.domain.items import Item, ItemKind, Version
from muniment_server.domain.releases import Release, ReleaseState, hash_of
from muniment_server.items import releasing
from muniment_server.items.item_store import find, get_own_version
from muniment_server.items.own_session import end_session, open_session, own_session
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.host_scope import HostScope
from muniment_server.releases import repository


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to release. Exactly one of name and item_id is not None. Revision 0 is the newest."""

    agent_id: str
    kind: ItemKind
    name: str | None
    item_id: ItemId | None
    revision: int
    content_hash: bytes
    source: Label
    target: Label
    reason: str
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class Shown:
    """A release, as a key that reviews it sees it."""

    release: Release
    source: Item | None = None
    """What it would write. None if it is not open, the item has changed, or the key may not read it here."""
    replaced: Item | None = None
    """What sessions at the target label would no longer see. None if there is nothing."""


@dataclass(frozen=True, slots=True)
class _Claimed:
    release_id: UUID


def request(context: CallContext, wanted: Wanted) -> Release:
    """Ask for a release.

    Raises InvalidArgument if the item may flow to the target, CeilingExceeded, ReleaseRightMissing, AgentNotFound,
    AgentAboveCeiling, AgentCeilingExceeded or ReleaseSourceChanged.
    """
    if wanted.source.can_flow_to(wanted.target):
        raise InvalidArgument(FieldViolation("classification", "must be a lower level, unless integrity is TRUSTED"))
    with context.host_scope() as scope:
        repository.require_rights(scope, wanted.agent_id, wanted.source, wanted.target)
    with (
        own_session(context, wanted.agent_id, wanted.kind, wanted.source) as own,
        context.own_session_scope(own.session_id, wanted.source) as session,
    ):
        item = get_own_version(session, wanted.kind, name=wanted.name, item_id=wanted.item_id)
    with context.host_scope() as scope:
        if not wanted.target.level.can_flow_to(own.agent_ceiling):
            scope.refuse(AgentCeilingExceeded(), agent_id=wanted.agent_id)
        if item is None or hash_of(item) != wanted.content_hash or wanted.revision not in {0, item.revision}:
            scope.refuse(ReleaseSourceChanged(), agent_id=wanted.agent_id)
        return repository.create(
            scope, wanted.agent_id, wanted.kind, item, wanted.target, reason=wanted.reason, ttl=wanted.ttl
        )


def approve(context: CallContext, release_id: UUID, content_hash: bytes) -> Release:
    """Approve a release; write it, if that was the last approval that it needs.

    Raises ReleaseNotFound, ReleaseOwnRequest, ReleaseRightMissing, ReleaseHashMismatch, ReleaseNotOpen, ReleaseExpired,
    ReleaseSourceChanged, or what `items.releasing.write` raises.
    """
    writer: SessionId | None = None
    with _changing(context, release_id, content_hash) as (scope, release):
        if release.state is not ReleaseState.RELEASED:  # written, and this key has approved it
            release = repository.approve(scope, release)
            if len(release.approvers) >= release.required:
                writer = _claim(scope, release)
    if writer is not None:
        try:
            _write(context, release, writer)
        finally:
            end_session(context, writer)
    with context.host_scope() as scope:
        return repository.get(scope, release_id)


def reject(context: CallContext, release_id: UUID, reason: str) -> Release:
    """Reject a release. Raises ReleaseNotFound, ReleaseRightMissing, ReleaseNotOpen or ReleaseExpired."""
    with _changing(context, release_id, None) as (scope, release):
        about = f"release {release_id}: {reason}" if reason else f"release {release_id}"
        repository.end(scope, release, ReleaseState.REJECTED, reason=about)
    with context.host_scope() as scope:
        return repository.get(scope, release_id)


def get(context: CallContext, release_id: UUID) -> Shown:
    """A release, with what it would write and replace. Raises ReleaseNotFound."""
    with context.host_scope() as scope:
        release = repository.get(scope, release_id)
    if release.state is not ReleaseState.OPEN or not (release.is_own or release.is_allowed):
        return Shown(release)
    reason = f"release {release_id}"
    source = _source(context, release, reason)
    if source is None or release.kind is ItemKind.PASSAGE:  # passages replace nothing
        return Shown(release, source)
    return Shown(release, source, _replaced(context, release, source.name, reason))


@contextmanager
def _changing(
    context: CallContext, release_id: UUID, content_hash: bytes | None
) -> Iterator[tuple[HostScope, Release]]:
    """A transaction that changes one release, after the end of any attempt to write it.

    With a hash, it is to approve the release. Refusals leave an audit row.
    """
    with context.host_scope() as scope:
        found = repository.get(scope, release_id)
        if (refusal := _refusal(found, content_hash)) is not None:
            scope.refuse(refusal, agent_id=found.agent_id)
    known = _settled(context, found)
    with context.host_scope() as scope:
        with scope.transaction():
            release = repository.locked(scope, found)
            if release.writer != known.writer:
                raise Conflict  # another call has begun to write it
            refusal = _not_open(release, approves=content_hash is not None)
            if refusal is None:
                yield scope, release
                return
        scope.refuse(refusal, agent_id=release.agent_id)


def _refusal(release: Release, content_hash: bytes | None) -> Refusal | None:
    """Why the key may not change the release, whatever its state is."""
    if content_hash is not None and release.is_own:
        return ReleaseOwnRequest()
    if not release.is_allowed:
        return ReleaseRightMissing()
    if content_hash not in {None, release.content_hash}:
        return ReleaseHashMismatch()
    return None


def _not_open(release: Release, *, approves: bool) -> Refusal | None:
    if release.state is ReleaseState.OPEN or (
        release.state is ReleaseState.RELEASED and approves and release.has_approved
    ):
        return None
    return ReleaseExpired() if release.state is ReleaseState.EXPIRED else ReleaseNotOpen()


def _settled(context: CallContext, release: Release) -> Release:
    """End any attempt to write the release. If it has succeeded, record that. Returns *release*, as it was read."""
    if release.writer is None or release.state not in {ReleaseState.OPEN, ReleaseState.EXPIRED}:
        return release
    end_session(context, release.writer)
    with context.audit_scope() as audit:
        written = audit.rows("find_written", Version, event_id=release.release_id)
    if written:
        with context.host_scope() as scope:
            repository.end(scope, release, ReleaseState.RELEASED, written=written[0], reason=release.parties)
    return release


def _claim(scope: HostScope, release: Release) -> SessionId:
    """Open the session that writes the release, and record it. Raises Unavailable while items are being erased."""
    own = open_session(
        scope, release.agent_id, release.kind, release.target, version=release.version, reason=release.parties
    )
    given = {"release_id": release.release_id, "session_id": own.session_id}
    if scope.first("claim_release", _Claimed, **given) is None:
        raise Unavailable
    return own.session_id


def _write(context: CallContext, release: Release, writer: SessionId) -> None:
    """Write the release as the session *writer*. Records that, or the refusal."""
    try:
        source = _source(context, release, release.parties)
        if source is None:
            raise ReleaseSourceChanged
        with context.own_session_scope(writer, release.target, writes=True) as session:
            written = releasing.write(session, release.kind, source, release.release_id)
    except StaleSession:
        raise Conflict from None  # an erasure, or another call that approves or rejects, has ended it
    except Refusal as refusal:
        with context.host_scope() as scope:
            repository.store_refusal(scope, release, refusal)
        raise
    with context.closing_scope() as scope:
        repository.end(scope, release, ReleaseState.RELEASED, written=written, reason=release.parties)


def _source(context: CallContext, release: Release, reason: str) -> Item | None:
    """The item, as its label's role reads it. None if it is no longer what the release names."""
    with (
        own_session(
            context, release.agent_id, release.kind, release.source, version=release.version, reason=reason
        ) as own,
        context.own_session_scope(own.session_id, release.source) as session,
    ):
        item = get_own_version(session, release.kind, item_id=release.item_id)
    return item if release.is_of(item) else None


def _replaced(context: CallContext, release: Release, name: str, reason: str) -> Item | None:
    """What sessions at the target label see under *name*: what the release overwrites, or shadows at a lower label."""
    with (
        own_session(context, release.agent_id, release.kind, release.target, reason=reason) as own,
        context.own_session_scope(own.session_id, release.target) as session,
    ):
        return find(session, release.kind, name)
