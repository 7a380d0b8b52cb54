"""UndeleteItem: a host brings one deleted item back, at the level at which it was deleted.

The control role reads no items, so the call opens a session at that level, which undeletes the item as sessions write:
on the connection of the level, under the session predicate and the session lock. So DeleteAgent and RaiseTaint stop it
as they stop any writer. The session ends with the call, and no one has its token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import AgentCeilingExceeded
from muniment_server.domain.ids import SessionId
from muniment_server.domain.items import ItemKind
from muniment_server.items import undeleting
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.host_scope import HostScope

_TTL = timedelta(minutes=10)
"""Longer than any call: a session that a killed server leaves expires."""


@dataclass(frozen=True, slots=True)
class _Begun:
    agent_ceiling: Classification
    """Not read, but a row of nulls alone would be none."""
    session_id: SessionId | None


@dataclass(frozen=True, slots=True)
class _Ended:
    session_id: SessionId


def undelete(context: CallContext, agent_id: str, kind: ItemKind, name: str, label: Label) -> None:
    """Bring the item back that was deleted last under *name* with *label*.

    Raises CeilingExceeded, IntegrityExceeded, AgentNotFound, AgentAboveCeiling, AgentCeilingExceeded, or what
    `items.undeleting.undelete` raises.
    """
    with _session(context, agent_id, kind, label) as session_id, context.undeleting_scope(session_id) as scope:
        undeleting.undelete(scope, kind, name)


@contextmanager
def _session(context: CallContext, agent_id: str, kind: ItemKind, label: Label) -> Iterator[SessionId]:
    with context.host_scope() as scope:
        session_id = _begin(scope, agent_id, kind, label)
    try:
        yield session_id
    finally:
        with context.closing_scope() as scope:
            scope.first("end_undeletion", _Ended, session_id=session_id)


def _begin(scope: HostScope, agent_id: str, kind: ItemKind, label: Label) -> SessionId:
    scope.require_ceiling(label.level, agent_id=agent_id)
    scope.require_integrity(label.integrity, agent_id=agent_id)
    begun = scope.change(
        "begin_undeletion",
        _Begun,
        agent_id=agent_id,
        kind=kind,
        level=label.level,
        trusted=label.is_trusted,
        session_id=scope.new_uuid(),
        token_hash=scope.new_secret(),
        ttl=_TTL,
    )
    if begun is None:
        scope.raise_unmanageable(agent_id)
    if begun.session_id is None:
        scope.record_refusal("AGENT_CEILING_EXCEEDED", agent_id=agent_id)
        raise AgentCeilingExceeded
    return begun.session_id
