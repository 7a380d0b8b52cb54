"""An operator's connection to a database: an administrator's login that acts as the owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import click
import psycopg
from psycopg import conninfo as libpq

from muniment.cli.failures import Failure
from muniment_server.domain.classification import Label
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.postgres import queries
from muniment_server.postgres.pool import administrator, operator_conninfo
from muniment_server.postgres.rows import rows_of, values_of
from muniment_server.postgres.transaction import login_of

_TRADES = ("connection", "tenants", "host_keys", "sessions", "purge", "history", "inspection", "sealing", "holds")
QUERIES = {name: text for trade in _TRADES for name, text in queries.load(__package__, f"{trade}.sql").items()}
"""The queries of all trades, by name."""
_R = TypeVar("_R")
_LIST_TENANTS = "list the tenants: muniment host-key list"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent, by its number."""

    tenant: TenantNumber
    agent: AgentNumber


class NoSuchTenant(Failure):
    """There is no tenant with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no such tenant: {name}", _LIST_TENANTS)


class NoSuchAgent(Failure):
    """The tenant has no agent with that id, or there is no such tenant."""

    def __init__(self, name: str) -> None:
        hint = f"{_LIST_TENANTS}; list a tenant's agents: muniment agent list"
        super().__init__(f"there is no such tenant or agent: {name}", hint)


class Operator:
    """An operator, connected to one database. What operators do stands in a module for each trade."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    @property
    def conninfo(self) -> str:
        """How another process connects as this operator does."""
        info = self.connection.info
        return libpq.make_conninfo(info.dsn, **({"password": info.password} if info.password else {}))

    def find_tenant(self, name: str) -> TenantNumber | None:
        """The number of a tenant. None if there is no tenant of that name."""
        return next(iter(self.values("find_tenant", name=name)), None)

    def tenant(self, name: str) -> TenantNumber:
        """The number of a tenant. Raises NoSuchTenant."""
        number = self.find_tenant(name)
        if number is None:
            raise NoSuchTenant(name)
        return number

    def agent(self, tenant: str, agent_id: str) -> Agent:
        """An agent of *tenant*. Raises NoSuchAgent."""
        found = self.rows("find_agent", Agent, tenant_name=tenant, agent_id=agent_id)
        if not found:
            raise NoSuchAgent(f"{agent_id} of {tenant}")
        return found[0]

    @contextmanager
    def at(self, label: Label) -> Iterator[None]:
        """A transaction in which unqualified names are those of *label*."""
        with self.connection.transaction():
            self.execute("use_schema", schema=label.role)
            yield

    @cached_property
    def _login(self) -> str:
        """Whom audit rows name."""
        return login_of(self.connection)

    def execute(self, query: str, /, **parameters: object) -> None:
        """Run a query by its name."""
        self.connection.execute(QUERIES[query], {**parameters, "login": self._login})

    def rows(self, query: str, row: type[_R], /, **parameters: object) -> list[_R]:
        """The rows of a query by its name."""
        return rows_of(self.connection, QUERIES, query, row, **{**parameters, "login": self._login})

    def one(self, query: str, row: type[_R], /, **parameters: object) -> _R:
        """The only row."""
        return self.rows(query, row, **parameters)[0]

    def values(self, query: str, /, **parameters: object) -> list[Any]:
        """The only column of a query by its name."""
        return values_of(self.connection, QUERIES, query, **{**parameters, "login": self._login})


def require_tenant(tenant: str | None, agent_id: str | None) -> None:
    """Raise UsageError where an agent of no tenant would mean all agents of all tenants."""
    if agent_id is not None and tenant is None:
        raise click.UsageError("--agent needs --tenant: two tenants may have agents of the same name")


@contextmanager
def connect_operator(admin: str) -> Iterator[Operator]:
    """An operator, connected to the database of the conninfo *admin* for the block.

    Raises NotCommitted at the end if a node of a cluster did not confirm a commit.
    """
    with administrator(operator_conninfo(admin), autocommit=True) as connection:
        yield Operator(connection)
