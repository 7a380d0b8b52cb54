"""Closes sessions and rejects releases, for an operator."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from muniment_server.admin.connection import Operator, require_tenant
from muniment_server.domain.ids import SessionId, TenantNumber

_UNDER_WAY_SECONDS = 2.0
"""How long calls that were accepted before may take to open a session."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """An open session."""

    tenant: TenantNumber
    session_id: SessionId


def close_sessions(operator: Operator, command: str, *, tenant: str | None = None, agent_id: str | None = None) -> int:
    """Close the open sessions of all tenants, of one *tenant*, or of one agent of it; return how many there were.

    *command* is the method in the audit log. Raises NoSuchTenant and NoSuchAgent.
    """
    require_tenant(tenant, agent_id)
    number = None if tenant is None else operator.tenant(tenant)
    agent = None if tenant is None or agent_id is None else operator.agent(tenant, agent_id).agent
    whose = {"tenant": number, "agent": agent, "session_ids": None}
    return int(operator.values("close_sessions", command=command, **whose)[0])


def end_what_is_open(operator: Operator, command: str) -> tuple[int, int]:
    """Close all open sessions, let no conversation be trusted, and reject all open releases.

    It is for a database that may be an older one: it lacks what the models have read since, and what hosts have
    rejected. Returns how many sessions were closed, and how many releases rejected.
    """
    closed = close_sessions(operator, command)
    operator.values("distrust_conversations", command=command)
    return closed, int(operator.values("reject_releases", command=command)[0])


def sessions_of_host_key(operator: Operator, host_key_id: UUID) -> list[OpenSession]:
    """The open sessions that a key has opened."""
    return operator.rows("sessions_of_host_key", OpenSession, host_key_id=host_key_id)


def close_sessions_of_host_key(operator: Operator, host_key_id: UUID) -> int:
    """Close the open sessions that a key has opened; return how many there were."""
    found = sessions_of_host_key(operator, host_key_id)
    if not found:
        return 0
    whose = {"tenant": found[0].tenant, "agent": None, "session_ids": [each.session_id for each in found]}
    return int(operator.values("close_sessions", command="host-key revoke", **whose)[0])


def close_twice(close: Callable[[], int]) -> int:
    """Call *close* now, and again for sessions that calls under way have opened since; return how many were closed."""
    closed = close()
    time.sleep(_UNDER_WAY_SECONDS)
    return closed + close()
