"""Agents, as a host manages them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from muniment_server.agents import tenant_limits
from muniment_server.domain.budgets import MemorySettings
from muniment_server.domain.classification import Classification, Label, meet
from muniment_server.domain.errors import AgentExists, AgentNotFound, ByteQuotaExceeded, ItemQuotaExceeded
from muniment_server.domain.ids import AgentNumber
from muniment_server.domain.limits import AgentLimits
from muniment_server.monitor.host_scope import HostScope

FIRST_BLOCKS: Mapping[str, str] = {"personality": "", "relationships": "", "current_state": ""}
"""The blocks, by label, that an agent starts with unless its host gives others."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An owner of items. Nothing here is derived from items.

    The `…_char_limit`s are in Unicode code points, `max_bytes` in bytes, and the other limits are counts.
    """

    agent_id: str
    display_name: str
    language: str
    ceiling: Classification
    known_from: Classification
    memory_enabled: bool
    user_profile_enabled: bool
    memory_char_limit: int
    user_char_limit: int
    calls_per_second: int
    max_items: int
    max_bytes: int
    max_revisions: int
    memory_ttl: timedelta
    passage_ttl: timedelta
    held: bool
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True)
class Storage:
    """What an agent stores with one label."""

    label: Label
    items: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Deleted:
    agent: AgentNumber


def create(
    scope: HostScope,
    agent_id: str,
    *,
    display_name: str,
    language: str,
    ceiling: Classification | None,
    known_from: Classification | None,
    settings: MemorySettings,
    limits: AgentLimits,
    first_blocks: Mapping[str, str],
) -> Agent:
    """Create an agent with its PUBLIC *first_blocks* by label. *ceiling* None: that of the host key.

    *known_from* None, or above the ceiling: the ceiling. Settings and limits are complete. Raises CeilingExceeded,
    AgentExists or QuotaExceeded.
    """
    if ceiling is not None:
        scope.require_ceiling(ceiling)
    if first_blocks != FIRST_BLOCKS:  # which are empty, and fit whatever the limits are
        _require_room(first_blocks, limits)
    with tenant_limits.room_for_new(scope, limits):
        agent = scope.first(
            "create_agent",
            Agent,
            change_id=scope.new_uuid(),
            agent=scope.new_number(),
            agent_id=agent_id or str(scope.new_uuid()),
            display_name=display_name,
            language=language,
            agent_ceiling=ceiling or scope.ceiling,
            known_from=known_from,
            labels=list(first_blocks),
            contents=list(first_blocks.values()),
            item_ids=[scope.new_uuid() for _ in first_blocks],
            change_ids=[scope.new_uuid() for _ in first_blocks],
            **asdict(settings),
            **asdict(limits),
        )
        if agent is None:
            raise AgentExists  # even if the tenant is full: hosts that create an agent again need to know
    return agent


def _require_room(first_blocks: Mapping[str, str], limits: AgentLimits) -> None:
    """Refuse blocks that sessions of a new agent with these limits could not write: see `items.quotas`."""
    if limits.max_items is not None and len(first_blocks) > limits.max_items:
        raise ItemQuotaExceeded
    size = sum(len(content.encode()) for content in first_blocks.values())
    if limits.max_bytes is not None and size > limits.max_bytes:
        raise ByteQuotaExceeded


def get(scope: HostScope, agent_id: str) -> Agent:
    """One agent. Raises AgentNotFound."""
    agent = scope.first("get_agent", Agent, agent_id=agent_id)
    if agent is None:
        raise AgentNotFound
    return agent


def storage(scope: HostScope, agent: Agent) -> list[Storage]:
    """What the agent stores at each level up to its ceiling and that of the key, the lowest first.

    Of trusted labels, only those with anything.
    """
    labels = [label for label in Label if label.level.can_flow_to(meet(agent.ceiling, scope.ceiling))]
    found = (scope.first(f"get_{label.name.lower()}_storage", Storage, agent_id=agent.agent_id) for label in labels)
    return [row for row in found if row is not None and (row.bytes or not row.label.is_trusted)]


def list_agents(scope: HostScope, *, after: str, limit: int) -> tuple[list[Agent], bool]:
    """Up to *limit* agents after the id *after*, by id; and whether there are more."""
    rows = scope.rows("list_agents", Agent, after=after, limit=limit + 1)
    return [row for row in rows[:limit] if row is not None], len(rows) > limit


def update(
    scope: HostScope,
    agent_id: str,
    *,
    display_name: str | None,
    language: str | None,
    known_from: Classification | None,
    settings: MemorySettings,
    limits: AgentLimits,
) -> Agent:
    """Change what is not None. Raises AgentNotFound, AgentAboveCeiling or TenantQuotaExceeded."""
    fields = {"agent_id": agent_id, "display_name": display_name, "language": language, "known_from": known_from}
    with tenant_limits.room_for_change(scope, agent_id, limits):
        updated = scope.send(
            "update_agent", Agent, change_id=scope.new_uuid(), **fields, **asdict(settings), **asdict(limits)
        )
    agent = updated()
    if agent is None:
        scope.raise_unmanageable(agent_id)
    return agent


def delete(scope: HostScope, agent_id: str) -> None:
    """Delete the agent: its id is free, its sessions are closed, and the eraser erases the rest.

    In this order, or it would deadlock with writers: mark the agent, lock its conversations, free its id. Raises
    AgentNotFound or AgentAboveCeiling.
    """
    with scope.transaction():
        scope.execute("mark_agent", agent_id=agent_id)
        scope.execute("lock_conversations", agent_id=agent_id)
        deleted = scope.send("delete_agent", _Deleted, agent_id=agent_id, change_id=scope.new_uuid())
    if deleted() is None:
        scope.raise_unmanageable(agent_id)
