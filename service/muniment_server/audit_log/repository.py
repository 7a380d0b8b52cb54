"""The audit log, as a host reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import HostKeyId, ItemId, SessionId
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.audit_scope import AuditScope


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One thing that was done, or refused."""

    event_id: UUID
    time: datetime
    classification: Classification
    trusted: bool
    """Whether a trusted session did it."""
    agent_id: str | None
    session_id: SessionId | None
    host_key_id: HostKeyId | None
    method: str
    outcome: str
    kind: ItemKind | None
    item_id: ItemId | None
    revision: int | None
    result_count: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last seal at one level."""

    number: int
    time: datetime
    event_count: int
    hash: bytes


def get_checkpoint(scope: AuditScope, label: Label) -> Checkpoint | None:
    """The last seal of *label*, or None if nothing was sealed."""
    rows = scope.rows("get_checkpoint", Checkpoint, chain=label.chain)
    return rows[0] if rows else None


def list_events(
    scope: AuditScope,
    *,
    agent_id: str | None,
    session_id: UUID | None,
    start_time: datetime | None,
    end_time: datetime | None,
    before: tuple[datetime, UUID],
    limit: int,
) -> tuple[list[AuditEvent], bool]:
    """Up to *limit* events before *before*, newest first; and whether there are more."""
    rows = scope.rows(
        "list_audit_events",
        AuditEvent,
        agent_id=agent_id,
        session_id=session_id,
        start_time=start_time,
        end_time=end_time,
        before_time=before[0],
        before_id=before[1],
        limit=limit + 1,
    )
    return rows[:limit], len(rows) > limit
