"""Which database server has which tenant.

Every token, and every session, names its tenant, and no statement reads two: so each call goes to one server. A server
without a file of servers has one, without a name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from muniment_server.domain.errors import Unavailable
from muniment_server.domain.ids import TenantNumber
from muniment_server.postgres.pool import Database, PoolLoad
from muniment_server.telemetry import database_metrics as metrics

ONLY = ""
"""The name of the server if there is one, and no file that names it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where tenants are. A tenant that is not named is at the first server."""

    servers: Mapping[str, str]
    """The conninfo of each server, by name, without a user. There is at least one."""
    tenants: Mapping[TenantNumber, str] = field(default_factory=dict)

    def server_of(self, tenant: TenantNumber) -> str:
        """The name of the server of *tenant*."""
        return self.tenants.get(tenant) or next(iter(self.servers))


@dataclass(slots=True, eq=False)
class PlacedDatabase:
    """The database of one server, as its tenants may use it now."""

    name: str
    database: Database
    is_verified: bool = True
    """Whether its grants are those of the grant matrix. With one server, the gate says so."""
    answers: bool = True
    """Whether it has answered within the last seconds."""
    tenants: Collection[TenantNumber] = ()
    """The tenants that it had when it last answered. They count as its tenants while it is away."""

    @property
    def suffix(self) -> str:
        """What a log line says of the server: nothing if it is the only one."""
        return f" of {self.name}" if self.name else ""


def claimed_twice(tenants: Mapping[str, Collection[TenantNumber]]) -> dict[TenantNumber, tuple[str, str]]:
    """Those *tenants* that two servers have, with the names of both."""
    return {
        tenant: (one, other)
        for one, other in combinations(tenants, 2)
        for tenant in sorted({*tenants[one]} & {*tenants[other]})
    }


class Databases:
    """The databases of all servers."""

    def __init__(self, placement: Placement, databases: Mapping[str, Database]) -> None:
        self._placement = placement
        self._placed = {name: PlacedDatabase(name, database) for name, database in databases.items()}
        self._refused: Collection[TenantNumber] = ()

    @classmethod
    def of_one(cls, database: Database) -> Databases:
        """One server, which has all tenants."""
        return cls(Placement({ONLY: ""}), {ONLY: database})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all servers."""
        return tuple(self._placed)

    def server_of(self, tenant: TenantNumber) -> str:
        """The name of the server of *tenant*."""
        return self._placement.server_of(tenant)

    def of(self, tenant: TenantNumber) -> Database:
        """The database that has *tenant*. Raises Unavailable if it must not be used: see `holding` and `refuses`."""
        if self.refuses(tenant):
            raise Unavailable
        return self.holding(tenant)

    def holding(self, tenant: TenantNumber) -> Database:
        """The database of the server of *tenant*. Raises Unavailable if that must not be used, or does not answer.

        A call that waited for a server would hold a thread that calls to the other servers need. With one server there
        are no others, and calls wait for it.
        """
        placed = self._placed[self.server_of(tenant)]
        if len(self._placed) > 1 and not (placed.is_verified and placed.answers):
            raise Unavailable
        return placed.database

    def refuse_claimed_twice(self) -> Mapping[TenantNumber, tuple[str, str]]:
        """Refuse the tenants that two servers have, and no others: it is unknown which server is right.

        Returns them, each with the names of both servers.
        """
        found = claimed_twice({placed.name: placed.tenants for placed in self})
        self._refused = found
        return found

    def refuses(self, tenant: TenantNumber) -> bool:
        """Whether *tenant* is refused, because two servers have it."""
        return tenant in self._refused

    def __iter__(self) -> Iterator[PlacedDatabase]:
        return iter(self._placed.values())

    def measure(self) -> None:
        """Bring the metrics of the connections up to date: by role, those to all servers together."""
        loads: dict[str, list[PoolLoad]] = {}
        for placed in self:
            for role, load in placed.database.loads():
                loads.setdefault(role, []).append(load)
        for role, of_role in loads.items():
            metrics.CONNECTIONS.labels(role, "idle").set(sum(load.idle for load in of_role))
            metrics.CONNECTIONS.labels(role, "used").set(sum(load.used for load in of_role))
            metrics.WAITING_FOR_CONNECTION.labels(role).set(sum(load.waiting for load in of_role))

    def close(self) -> None:
        """Close all pools."""
        for placed in self:
            placed.database.close()
