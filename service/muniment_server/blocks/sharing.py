"""Which blocks agents share, as a host decides. Declarations and links have no level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import (
    AgentCeilingExceeded,
    BlockExists,
    BlockNotAttached,
    ByteQuotaExceeded,
    ItemQuotaExceeded,
    SharedBlockNotFound,
)
from muniment_server.domain.ids import AgentNumber
from muniment_server.monitor.host_scope import HostScope


@dataclass(frozen=True, slots=True)
class _Agent:
    agent: AgentNumber


@dataclass(frozen=True, slots=True)
class _Created:
    owner: AgentNumber
    is_new: bool
    """Whether the block has got a PUBLIC version."""
    max_items: int
    max_bytes: int
    items: int
    bytes: int


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
class _Attached(_Link):
    above: Classification | None


@dataclass(frozen=True, slots=True)
class _Detached(_Link):
    detached: AgentNumber | None


@dataclass(frozen=True, slots=True)
class _Consumer:
    declared: AgentNumber | None
    agent_id: str | None


def create(scope: HostScope, owner_agent_id: str, label: str, content: str) -> None:
    """Declare a block as shared; create its PUBLIC version if there is none.

    Raises AgentNotFound, AgentAboveCeiling, BlockExists, or QuotaExceeded if the limits of the agent have no room.
    """
    with scope.transaction():
        owner = scope.send("lock_agent", _Agent, owner_agent_id=owner_agent_id)
        created = scope.first(
            "create_shared_block",
            _Created,
            owner_agent_id=owner_agent_id,
            label=label,
            content=content,
            item_id=scope.new_uuid(),
            change_id=scope.new_uuid(),
        )
        if created is not None and created.is_new:
            _require_room(created, content)
    if owner() is None:
        scope.raise_unmanageable(owner_agent_id)
    if created is None:
        raise BlockExists


def _require_room(created: _Created, content: str) -> None:
    """Undo what was created if it is more than a session could have written: see `items.quotas`."""
    if created.items + 1 > created.max_items:
        raise ItemQuotaExceeded
    if created.bytes + len(content.encode()) > created.max_bytes:
        raise ByteQuotaExceeded


def delete(scope: HostScope, owner_agent_id: str, label: str) -> None:
    """End a declaration and all its links. Raises AgentNotFound, AgentAboveCeiling, SharedBlockNotFound."""
    row = scope.change("delete_shared_block", _Declaration, owner_agent_id=owner_agent_id, label=label)
    if row is None or row.owner is None:
        scope.raise_unmanageable(owner_agent_id)
    if row.declared is None:
        raise SharedBlockNotFound


def attach(scope: HostScope, owner_agent_id: str, label: str, agent_id: str) -> None:
    """Let an agent read a shared block.

    Raises AgentNotFound, AgentAboveCeiling, SharedBlockNotFound or AgentCeilingExceeded.
    """
    parties = {"owner_agent_id": owner_agent_id, "agent_id": agent_id}
    with scope.transaction():
        scope.execute("lock_parties", **parties)
        attached = scope.send("attach_block", _Attached, label=label, change_id=scope.new_uuid(), **parties)
    row = attached()
    _require_declared(scope, row, owner_agent_id, agent_id)
    if row is not None and row.above is not None:
        scope.record_refusal("AGENT_CEILING_EXCEEDED", agent_id=agent_id)
        raise AgentCeilingExceeded


def detach(scope: HostScope, owner_agent_id: str, label: str, agent_id: str) -> None:
    """End the link of an agent to a shared block.

    Raises AgentNotFound, AgentAboveCeiling, SharedBlockNotFound, BlockNotAttached.
    """
    row = scope.change("detach_block", _Detached, owner_agent_id=owner_agent_id, label=label, agent_id=agent_id)
    _require_declared(scope, row, owner_agent_id, agent_id)
    if row is None or row.detached is None:
        raise BlockNotAttached


def consumers(
    scope: HostScope, owner_agent_id: str, label: str, *, after: str, limit: int
) -> tuple[Sequence[str], bool]:
    """Up to *limit* ids, after *after*, of the agents that read a shared block; and whether there are more.

    Raises AgentNotFound, AgentAboveCeiling, SharedBlockNotFound.
    """
    rows = scope.rows(
        "list_block_consumers", _Consumer, owner_agent_id=owner_agent_id, label=label, after=after, limit=limit + 1
    )
    if not rows:
        scope.raise_unmanageable(owner_agent_id)
    if rows[0] is None:
        raise SharedBlockNotFound
    agent_ids = [row.agent_id for row in rows if row is not None and row.agent_id is not None]
    return agent_ids[:limit], len(agent_ids) > limit


def _require_declared(scope: HostScope, row: _Link | None, *agent_ids: str) -> None:
    if row is None or row.owner is None or row.consumer is None:
        scope.raise_unmanageable(*agent_ids)
    if row.declared is None:
        raise SharedBlockNotFound
