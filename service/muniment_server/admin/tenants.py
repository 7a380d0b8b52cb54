"""What operators do with tenants: names, limits, moves that have not ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from muniment_server.admin.connection import Operator
from muniment_server.domain.ids import TenantNumber
from muniment_server.runtime.claims import RANGE


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """What the agents of a tenant may be given together, and what its releases need. None is no limit."""

    tenant: str
    max_agents: int | None
    calls_per_second: int | None
    max_items: int | None
    max_bytes: int | None
    release_approvals: int
    """How many keys beside the requester's must approve a release."""


@dataclass(frozen=True, slots=True)
class MovingTenant:
    """A tenant whose move has not ended.

    Seen at the server that it leaves (`moving_to` is set) or enters (`moving_from` is set).
    """

    tenant: str
    moving_to: str | None
    moving_from: str | None


def tenant_names(operator: Operator) -> list[str]:
    """The names of all tenants."""
    return operator.values("list_tenant_names")


def tenant_limits(operator: Operator, tenant: str) -> TenantLimits:
    """The limits of *tenant*. Raises NoSuchTenant."""
    return operator.one("get_tenant_limits", TenantLimits, tenant=operator.tenant(tenant))


def limit_tenant(operator: Operator, tenant: str, limits: Mapping[str, int | None]) -> None:
    """Set those *limits* of *tenant*, by name, that are not None; -1 removes a limit. Raises NoSuchTenant."""
    operator.execute("set_tenant_limits", tenant=operator.tenant(tenant), **limits)


def moving_tenants(operator: Operator) -> list[MovingTenant]:
    """The tenants whose move to another server, or from one, has not ended."""
    return operator.rows("list_moving", MovingTenant)


def create_tenant(operator: Operator, name: str, taken: Collection[TenantNumber]) -> TenantNumber:
    """Create a tenant. A lock replaces a unique index on names: every index begins with the tenant."""
    operator.execute("lock_tenants")
    operator.execute("skip_tenant_numbers", tenants=list(taken), range=RANGE)
    return operator.find_tenant(name) or TenantNumber(operator.values("create_tenant", name=name)[0])
