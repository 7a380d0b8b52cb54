"""The sessions in which calls of hosts read or write items.

The control role reads no items, so such a call opens a session with the label of the items, and reads or writes as
sessions do: on the connection of the label, under the session predicate and the session lock. So DeleteAgent and
RaiseTaint stop it as they stop any session. It ends with the call, and no one has its token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import AgentCeilingExceeded
from muniment_server.domain.ids import SessionId
from muniment_server.domain.items import ItemKind, Version
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.host_scope import HostScope

_TTL = timedelta(minutes=10)
"""Longer than any call: a session that a killed server leaves expires."""


class OwnSession(NamedTuple):
    """A session that a call has opened for itself."""

    session_id: SessionId
    agent_ceiling: Classification


@dataclass(frozen=True, slots=True)
class _Opened:
    agent_ceiling: Classification
    session_id: SessionId | None


@dataclass(frozen=True, slots=True)
class _Ended:
    session_id: SessionId


@contextmanager
def own_session(
    context: CallContext,
    agent_id: str,
    kind: ItemKind,
    label: Label,
    *,
    version: Version | None = None,
    reason: str | None = None,
) -> Iterator[OwnSession]:
    """A session with *label*, which ends with the block. *version* and *reason* are for the audit.

    Raises CeilingExceeded, IntegrityExceeded, AgentNotFound, AgentAboveCeiling or AgentCeilingExceeded.
    """
    with context.host_scope() as scope:
        opened = open_session(scope, agent_id, kind, label, version=version, reason=reason)
    try:
        yield opened
    finally:
        end_session(context, opened.session_id)


def open_session(
    scope: HostScope,
    agent_id: str,
    kind: ItemKind,
    label: Label,
    *,
    version: Version | None = None,
    reason: str | None = None,
) -> OwnSession:
    """Open the session of `own_session`, for those who end it themselves: see `end_session`."""
    scope.require_ceiling(label.level, agent_id=agent_id)
    scope.require_integrity(label.integrity, agent_id=agent_id)
    opened = scope.change(
        "open_own_session",
        _Opened,
        agent_id=agent_id,
        kind=kind,
        level=label.level,
        trusted=label.is_trusted,
        session_id=scope.new_uuid(),
        token_hash=scope.new_secret(),
        ttl=_TTL,
        item_id=version and version.item_id,
        revision=version and version.revision,
        reason=reason,
    )
    if opened is None:
        scope.raise_unmanageable(agent_id)
    if opened.session_id is None:
        scope.record_refusal("AGENT_CEILING_EXCEEDED", agent_id=agent_id)
        raise AgentCeilingExceeded
    return OwnSession(opened.session_id, opened.agent_ceiling)


def end_session(context: CallContext, session_id: SessionId) -> None:
    """End a session of `open_session`, even after the caller has canceled the call."""
    with context.closing_scope() as scope:
        scope.first("end_own_session", _Ended, session_id=session_id)
