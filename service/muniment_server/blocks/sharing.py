"""Which blocks agents share, as a host decides. Declarations and links have no level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muniment_server.domain.errors import AgentNotFound, BlockExists, BlockNotAttached, SharedBlockNotFound
from muniment_server.domain.ids import AgentNumber
from muniment_server.monitor.host_scope import HostScope


@dataclass(frozen=True, slots=True)
class _Agent:
    agent: AgentNumber


@dataclass(frozen=True, slots=True)
class _Created:
    owner: AgentNumber


@dataclass(frozen=True, slots=True)
class _Declaration:
    owner: AgentNumber | None
    declared: AgentNumber | None


@dataclass(frozen=True, slots=True)
class _Link:
    owner: AgentNumber | None
    consumer: AgentNumber | None
    declared: AgentNumber | None


@dataclass(frozen=True, slots=True)
class _Detached(_Link):
    detached: AgentNumber | None


@dataclass(frozen=True, slots=True)
class _Consumer:
    declared: AgentNumber | None
    agent_id: str | None


def create(scope: HostScope, owner_agent_id: str, label: str, content: str) -> None:
    """Declare a block as shared; create its PUBLIC version if there is none. Raises AgentNotFound, BlockExists."""
    with scope.transaction():
        owner = scope.send("lock_agent", _Agent, owner_agent_id=owner_agent_id)
        created = scope.send(
            "create_shared_block",
            _Created,
            owner_agent_id=owner_agent_id,
            label=label,
            content=content,
            item_id=scope.new_uuid(),
            change_id=scope.new_uuid(),
        )
    if owner() is None:
        raise AgentNotFound
    if created() is None:
        raise BlockExists


def delete(scope: HostScope, owner_agent_id: str, label: str) -> None:
    """End a declaration and all its links. Raises AgentNotFound, SharedBlockNotFound."""
    row = scope.change("delete_shared_block", _Declaration, owner_agent_id=owner_agent_id, label=label)
    if row is None or row.owner is None:
        raise AgentNotFound
    if row.declared is None:
        raise SharedBlockNotFound


def attach(scope: HostScope, owner_agent_id: str, label: str, agent_id: str) -> None:
    """Let an agent read a shared block. Raises AgentNotFound, SharedBlockNotFound."""
    parties = {"owner_agent_id": owner_agent_id, "agent_id": agent_id}
    with scope.transaction():
        scope.execute("lock_parties", **parties)
        link = scope.send("attach_block", _Link, label=label, change_id=scope.new_uuid(), **parties)
    _require_declared(link())


def detach(scope: HostScope, owner_agent_id: str, label: str, agent_id: str) -> None:
    """End the link of an agent to a shared block. Raises AgentNotFound, SharedBlockNotFound, BlockNotAttached."""
    row = scope.change("detach_block", _Detached, owner_agent_id=owner_agent_id, label=label, agent_id=agent_id)
    _require_declared(row)
    if row is None or row.detached is None:
        raise BlockNotAttached


def consumers(
    scope: HostScope, owner_agent_id: str, label: str, *, after: str, limit: int
) -> tuple[Sequence[str], bool]:
    """Up to *limit* ids, after *after*, of the agents that read a shared block; and whether there are more.

    Raises AgentNotFound, SharedBlockNotFound.
    """
    rows = scope.rows(
        "list_block_consumers", _Consumer, owner_agent_id=owner_agent_id, label=label, after=after, limit=limit + 1
    )
    if not rows:
        raise AgentNotFound
    if rows[0] is None:
        raise SharedBlockNotFound
    agent_ids = [row.agent_id for row in rows if row is not None and row.agent_id is not None]
    return agent_ids[:limit], len(agent_ids) > limit


def _require_declared(row: _Link | None) -> None:
    if row is None or row.owner is None or row.consumer is None:
        raise AgentNotFound
    if row.declared is None:
        raise SharedBlockNotFound
