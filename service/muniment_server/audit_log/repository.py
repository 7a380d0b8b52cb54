"""The record of what was done, as the auditor reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from muniment_server.domain.classification import Classification
from muniment_server.domain.records import AuditEvent, HostIdentity, ItemKind
from muniment_server.postgres import queries

_QUERIES = queries.load("audit")


class Audit:
    """The audit events of one tenant, up to a ceiling."""

    def __init__(self, connection: psycopg.Connection[Any], host: HostIdentity) -> None:
        self._connection = connection
        self._host = host

    def list(
        self,
        *,
        agent_id: str | None,
        session_id: UUID | None,
        start_time: datetime | None,
        end_time: datetime | None,
        before: tuple[datetime, UUID],
        limit: int,
    ) -> tuple[list[AuditEvent], bool]:
        """Up to *limit* events, newest first, those before *before*; and whether there are more."""
        rows = self._connection.execute(
            _QUERIES["list_audit_events"],
            {
                "tenant": self._host.tenant,
                "ceiling": self._host.ceiling,
                "agent_id": agent_id,
                "session_id": session_id,
                "start_time": start_time,
                "end_time": end_time,
                "before_time": before[0],
                "before_id": before[1],
                "limit": limit + 1,
            },
        ).fetchall()
        return [_event(row) for row in rows[:limit]], len(rows) > limit


def _event(row: Any) -> AuditEvent:
    return AuditEvent(
        event_id=row.event_id,
        time=row.time,
        classification=Classification(row.level),
        agent_id=row.agent_id,
        session_id=row.session_id,
        host_key_id=row.host_key_id,
        method=row.method,
        outcome=row.outcome,
        kind=row.kind and ItemKind(row.kind),
        item_id=row.item_id,
        revision=row.revision,
        result_count=row.result_count,
        reason=row.reason,
    )
