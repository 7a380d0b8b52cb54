"""The limits of a tenant: what hosts may give to its agents together.

They bound what hosts hand out, and refuse no session: a session that met one would learn of other agents and levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

from muniment_server.domain.errors import TenantQuotaExceeded
from muniment_server.domain.limits import AgentLimits
from muniment_server.monitor.host_scope import HostScope


@dataclass(frozen=True, slots=True)
class _Given:
    """One limit: what the tenant may have, what its agents have together, and what one agent has of it."""

    name: str
    most: int | None
    given: Decimal
    """A sum, which may exceed a bigint."""
    own: int


@contextmanager
def room_for_new(scope: HostScope, limits: AgentLimits) -> Iterator[None]:
    """A transaction that creates an agent with *limits*. Raises TenantQuotaExceeded if the tenant may not have it.

    The agent is created before the sums are read, and they count it.
    """
    wanted = {"agents": 1, **_summed(limits)}
    with scope.transaction():
        scope.execute("lock_tenant")
        yield
        for row in scope.rows("given_limits", _Given, agent_id=None):
            if row is not None and row.most is not None and wanted.get(row.name) and row.given > row.most:
                raise TenantQuotaExceeded


@contextmanager
def room_for_change(scope: HostScope, agent_id: str, limits: AgentLimits) -> Iterator[None]:
    """A transaction that changes the *limits* of an agent that are not None. Raises TenantQuotaExceeded."""
    wanted = _summed(limits)
    with scope.transaction():
        if wanted:  # no other change needs the lock
            scope.execute("lock_tenant")
            _require_room(scope, agent_id, wanted)
        yield


def _summed(limits: AgentLimits) -> dict[str, int]:
    """Those *limits* that the limits of a tenant bound."""
    found = {"calls_per_second": limits.calls_per_second, "max_items": limits.max_items, "max_bytes": limits.max_bytes}
    return {name: value for name, value in found.items() if value is not None}


def _require_room(scope: HostScope, agent_id: str, wanted: dict[str, int]) -> None:
    """Refuse to give an agent more than the tenant's limits leave. Less than the agent has is never refused."""
    for row in scope.rows("given_limits", _Given, agent_id=agent_id):
        if row is None or row.most is None or (asked := wanted.get(row.name)) is None:
            continue
        if asked > row.own and row.given - row.own + asked > row.most:
            raise TenantQuotaExceeded
