"""Moves a tenant to another database server: close, copy, compare, let go, activate.

At every moment at most one server lets the tenant write, whatever is killed when:

1. The tenant is closed at the source: its row says where it moves, its host keys are revoked, its sessions closed.
2. In one transaction of each server, the source's rows are locked and copied, table by table, and then deleted. What is
   deleted is compared with what has arrived. The target commits first. The tenant is not served there yet.
3. The source commits. From then on it has no row that a new one could refer to.
4. The target serves the tenant.

Interrupted before 3, the source still has everything, and what the target has is dropped and copied again. Interrupted
after 3, only 4 is left. So running the command again always ends it, and `--to` the source gives it up before 3, even
if the target is not in the file. What the target has is not served while a server of the file has the tenant; another
move to that target drops it.

A commit of a cluster can be in doubt: a node has prepared it, and died. The command fails then. Until the node is back
and the cluster has ended that transaction, its rows are locked. So the next run waits wherever it locks or inserts a
row of the tenant, and sees the outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from muniment.cli.failures import Failure
from muniment_server.admin.connection import QUERIES
from muniment_server.domain.ids import TenantNumber
from muniment_server.postgres import queries, roles
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.rows import rows_of, values_of
from muniment_server.postgres.transaction import login_of

_QUERIES = {**queries.load(__package__, "moving.sql"), **QUERIES}
_SCHEMAS = ("vault", roles.CONTROL, roles.AUDITOR, roles.ERASER, *roles.LABELS)
_STORED = "SELECT {columns} FROM {table} AS compared WHERE compared.tenant = {tenant}"
_DELETED = "DELETE FROM {table} AS compared WHERE compared.tenant = {tenant} RETURNING {columns}"
_ATTEMPTS = 3
"""How often rows are copied if some change meanwhile: those that no call of a principal writes, such as seals."""
_COMMAND = "tenant move"
_COMPARED_BY_KEY = frozenset({"meaning", "embedding_list"})
"""Embeddings and centers of lists are computed meanwhile. Rows that arrive without theirs get it at the target."""
_NOT_COMPARED = frozenset({"remote_embedding"})
"""Chunks are queued for the model at an address meanwhile. The target's embedder looks for those that are missing."""
_SETTINGS = {
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "0",
    "synchronous_commit": "on",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
"""Text of values does not depend on the settings of a login, no wait ends the transaction, and what is committed is
on the disk."""


class CannotMove(Failure):
    """The tenant cannot be moved. The text says what to do."""


class _Changed(Exception):
    """Rows of the source changed between the copy and the deletion."""


@dataclass(frozen=True, slots=True)
class Place:
    """How the tenant of a name stands at one server."""

    tenant: TenantNumber
    name: str
    moving_to: str | None
    moving_from: str | None

    def is_copy(self, name: str) -> bool:
        """Whether this is what a move of the tenant *name* has brought, rather than a tenant that is served here."""
        return self.name == name and self.moving_from is not None


@dataclass(frozen=True, slots=True)
class Step:
    """What has just been done: rows of a *table* were copied, or a whole step has ended."""

    name: str
    table: str | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is left to do."""

    tenant: TenantNumber
    source: str | None
    """None: everything is at the target, where only `activate` is left."""
    target: str
    gives_up: bool = False
    """Whether the move that had begun is given up: the source keeps the tenant."""


@dataclass(frozen=True, slots=True)
class _Table:
    schema: str
    name: str
    columns: list[str]
    key: list[str]

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class _Reference:
    schema: str
    name: str
    to_schema: str
    to_name: str


@dataclass(frozen=True, slots=True)
class _Digest:
    """The number of rows, and sums of two hashes of each. Sums do not depend on an order, and can be subtracted."""

    rows: int
    first: int
    second: int

    def __sub__(self, other: _Digest) -> _Digest:
        return _Digest(self.rows - other.rows, self.first - other.first, self.second - other.second)


class Move:
    """The move of the tenant of one name, between *servers*: connections that act as the owner, by name."""

    def __init__(self, servers: Mapping[str, psycopg.Connection[Any]], name: str) -> None:
        self._servers = servers
        self._name = name
        self._warnings = {server: engine_of(connection).doubts() for server, connection in servers.items()}
        for server, connection in servers.items():
            connection.add_notice_handler(self._warnings[server].note)

    def plan(self, target: str) -> Plan | None:
        """What is left to do to have the tenant at *target*. None: it is there. Raises CannotMove.

        Waits for the end of another move of the tenant that is running, and of its commits that are in doubt.
        """
        self._wait_for_other_moves()
        places = self._places()
        staying = [server for server, place in places.items() if place.moving_from is None]
        arriving = [server for server, place in places.items() if place.moving_from is not None]
        if not places:
            raise CannotMove("no server has this tenant: list the tenants: muniment host-key list")
        if len(staying) > 1:
            raise CannotMove(f"the servers {' and '.join(staying)} both have this tenant: take one out of the file")
        if not staying:
            if arriving != [target]:
                raise CannotMove(
                    f"the tenant has moved to {arriving[0]}, and that has not ended: move it --to {arriving[0]}"
                )
            if (source := places[target].moving_from) not in self._servers:
                raise CannotMove(f"the tenant moves from {source}, which is not in the file of servers: add it")
            return Plan(places[target].tenant, None, target)
        return self._plan_from(staying[0], target, places)

    def _wait_for_other_moves(self) -> None:
        """Wait for the end of another move's step, even if no row shows that move: its first commit may be in doubt."""
        for server, place in self._places().items():
            connection = self._servers[server]
            with connection.transaction():
                _prepare(connection)
                _execute(connection, "await_moves", tenant=place.tenant)

    def _places(self) -> dict[str, Place]:
        return {
            server: place
            for server, connection in self._servers.items()
            for place in rows_of(connection, _QUERIES, "places", Place, name=self._name)
        }

    def _holders(self, server: str, tenant: TenantNumber) -> list[Place]:
        """The tenant that has this number at *server*, if there is one."""
        return rows_of(self._servers[server], _QUERIES, "holder", Place, tenant=tenant)

    def _plan_from(self, source: str, target: str, places: Mapping[str, Place]) -> Plan | None:
        place = places[source]
        if source == target:
            return None if place.moving_to is None else Plan(place.tenant, source, place.moving_to, gives_up=True)
        if place.moving_to not in {None, target}:
            raise CannotMove(f"the tenant is moving to {place.moving_to}: end that first, or give it up: --to {source}")
        if any(found.tenant != place.tenant for found in places.values()):
            raise CannotMove(f"the server {target} has another tenant of this name")
        if any(holder.name != self._name for holder in self._holders(target, place.tenant)):
            raise CannotMove(
                f"the server {target} has another tenant with the number {place.tenant}: no file can name both servers"
            )
        versions = {values_of(self._servers[name], _QUERIES, "version")[0] for name in (source, target)}
        if len(versions) > 1:
            raise CannotMove("the two databases have different versions of the schema: run `muniment migrate` on both")
        return Plan(place.tenant, source, target)

    def rows(self, plan: Plan) -> list[Step]:
        """How many rows of each table would move."""
        connection = self._servers[plan.source or plan.target]
        steps = []
        for table in _tables(connection):
            count = sql.SQL("SELECT count(*) FROM {} WHERE tenant = {}").format(
                table.identifier, sql.Literal(plan.tenant)
            )
            (rows,) = connection.execute(count).fetchone() or (0,)
            steps.append(Step("copy", str(table), rows))
        return steps

    def run(self, plan: Plan) -> Iterator[Step]:
        """Do what is left, step by step. Raises CannotMove."""
        if plan.source is None:
            yield from self._activate(plan)
        elif plan.gives_up:
            yield from self._give_up(plan, plan.source)
        else:
            yield from self._close(plan, plan.source)
            yield from self._transfer(plan, plan.source)
            yield from self._activate(plan)

    def _close(self, plan: Plan, source: str) -> Iterator[Step]:
        """End the sessions and revoke the keys of the tenant. Calls that wait for a lock find neither afterwards."""
        connection = self._servers[source]
        if values_of(connection, _QUERIES, "being_erased", tenant=plan.tenant)[0]:
            raise CannotMove(
                "deleted agents of this tenant are still being erased: run it again when `muniment doctor` no longer "
                "says so"
            )
        with connection.transaction():
            _prepare(connection)
            self._lock(connection, plan, source)
            _execute(connection, "leave", tenant=plan.tenant, server=plan.target)
            _end_principals(connection, plan.tenant)
        self._require_committed(source)
        yield Step("close")

    def _transfer(self, plan: Plan, source: str) -> Iterator[Step]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                yield from self._transfer_once(plan, source)
            except (_Changed, psycopg.errors.DeadlockDetected):
                if attempt == _ATTEMPTS:
                    raise CannotMove(
                        "rows of the tenant changed while they were copied, and nothing was moved: run it again"
                    ) from None
            else:
                return

    def _transfer_once(self, plan: Plan, source: str) -> Iterator[Step]:
        """Copy everything, and delete it at the source. The target commits first."""
        sending, receiving = self._servers[source], self._servers[plan.target]
        with sending.transaction():
            _prepare(sending)
            self._lock(sending, plan, source)
            with receiving.transaction():
                _prepare(receiving)
                tables = _tables(sending)
                while not self._arrive(plan, source):
                    _drop(receiving, plan.tenant, self._name, tables)
                for query in ("lock_agents", "lock_moving_conversations", "lock_sessions"):
                    sending.execute(_QUERIES[query], {"tenant": plan.tenant})
                before = {str(table): _summed(receiving, _STORED, plan.tenant, table) for table in tables}
                for table in tables:
                    yield Step("copy", str(table), _copy(sending, receiving, plan.tenant, table))
                for table in reversed(tables):
                    arrived = _summed(receiving, _STORED, plan.tenant, table) - before[str(table)]
                    if _summed(sending, _DELETED, plan.tenant, table) != arrived and table.name not in _NOT_COMPARED:
                        raise _Changed
                    yield Step("compare", str(table))
                _end_principals(receiving, plan.tenant)  # those that calls under way have made since then
                sending.execute(_QUERIES["delete_tenant"], {"tenant": plan.tenant})
            self._require_committed(plan.target)
            yield Step("arrive")
        self._require_committed(source)
        yield Step("let go")

    def _arrive(self, plan: Plan, source: str) -> bool:
        """Insert the tenant at the target. False if the target has a copy of it.

        Waits for a copy whose commit is in doubt: until that has ended, no query shows its rows.
        """
        cursor: Any = self._servers[source].cursor(row_factory=dict_row)
        stated = cursor.execute(_QUERIES["tenant"], {"tenant": plan.tenant}).fetchone()
        arriving = {"tenant": plan.tenant, "server": source, **stated}
        return self._servers[plan.target].execute(_QUERIES["arrive"], arriving).rowcount == 1

    def _activate(self, plan: Plan) -> Iterator[Step]:
        connection = self._servers[plan.target]
        with connection.transaction():
            _prepare(connection)
            _execute(connection, "activate", tenant=plan.tenant)
        self._require_committed(plan.target)
        yield Step("activate")

    def _give_up(self, plan: Plan, source: str) -> Iterator[Step]:
        connection, other = self._servers[source], self._servers.get(plan.target)
        with connection.transaction():
            _prepare(connection)
            self._lock(connection, plan, source)
            if other is not None:
                with other.transaction():
                    _prepare(other)
                    self._arrive(plan, source)  # waits for a copy in doubt, so that none is left
                    if self._holders(plan.target, plan.tenant)[0].is_copy(self._name):
                        _drop(other, plan.tenant, self._name, _tables(other))
                self._require_committed(plan.target)
                yield Step("drop")
            _execute(connection, "stay", tenant=plan.tenant)
        self._require_committed(source)
        yield Step("stay")

    def _lock(self, connection: psycopg.Connection[Any], plan: Plan, source: str) -> None:
        """Lock the tenant's row. Raises CannotMove if another move has changed it since the plan was made."""
        places = rows_of(connection, _QUERIES, "lock_moving_tenant", Place, tenant=plan.tenant)
        if not places or places[0].moving_from is not None or places[0].moving_to not in {None, plan.target}:
            raise CannotMove(f"another move of this tenant has changed what {source} has: run it again")

    def _require_committed(self, server: str) -> None:
        """Raise CannotMove if a node of a cluster did not confirm a commit: it may still show the old rows."""
        if self._warnings[server]:
            raise CannotMove(f"a node of {server} did not confirm a commit: run it again when all its nodes are back")


def _prepare(connection: psycopg.Connection[Any]) -> None:
    for name, value in {**engine_of(connection).settings_of_moves, **_SETTINGS}.items():  # one by one, as nodes get it
        setting = sql.Identifier(*name.split("."))
        connection.execute(sql.SQL("SET LOCAL {} = {}").format(setting, sql.Literal(value)))


def _end_principals(connection: psycopg.Connection[Any], tenant: TenantNumber) -> None:
    """Revoke the host keys of *tenant*, and close its sessions: no credential of it is valid any more."""
    login = login_of(connection)
    _execute(connection, "revoke_host_keys", tenant=tenant, login=login)
    _execute(connection, "close_sessions", command=_COMMAND, tenant=tenant, agent=None, session_ids=None, login=login)


def _tables(connection: psycopg.Connection[Any]) -> list[_Table]:
    """The tables with rows of tenants, but that of tenants itself. One that another refers to is before it."""
    schemas = list(_SCHEMAS)
    found = {str(table): table for table in rows_of(connection, _QUERIES, "tables", _Table, schemas=schemas)}
    order = TopologicalSorter[str](dict.fromkeys(found, ()))
    for reference in rows_of(connection, _QUERIES, "references", _Reference, schemas=schemas):
        order.add(f"{reference.schema}.{reference.name}", f"{reference.to_schema}.{reference.to_name}")
    return [found[name] for name in order.static_order() if name != "vault.tenant"]


def _copy(source: psycopg.Connection[Any], target: psycopg.Connection[Any], tenant: TenantNumber, table: _Table) -> int:
    """Copy the rows of one table; return how many there are.

    In binary: if a copy as text fails or is canceled, Postgres logs the line it was at, with the name of an item.
    """
    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    reading = sql.SQL("COPY (SELECT {} FROM {} WHERE tenant = {}) TO STDOUT (FORMAT binary)").format(
        columns, table.identifier, sql.Literal(tenant)
    )
    writing = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(table.identifier, columns)
    cursor = target.cursor()
    with source.cursor().copy(reading) as rows, cursor.copy(writing) as copied:
        for block in rows:
            copied.write(block)
    return cursor.rowcount


def _summed(connection: psycopg.Connection[Any], rows: LiteralString, tenant: TenantNumber, table: _Table) -> _Digest:
    """The digest of the *rows* of *tenant* in one table: `_STORED`, or `_DELETED`."""
    compared = table.key if table.name in _COMPARED_BY_KEY else table.columns
    columns = sql.SQL(", ").join(sql.Identifier("compared", column) for column in compared)
    # The text of a row is made from what was returned: on a cluster, RETURNING cannot make it.
    statement = sql.SQL(
        "WITH compared AS ({rows}) SELECT count(*), coalesce(sum(hashtextextended({row}, 0)::numeric), 0)::numeric,"
        " coalesce(sum(hashtextextended({row}, 1)::numeric), 0)::numeric FROM compared"
    ).format(
        rows=sql.SQL(rows).format(columns=columns, table=table.identifier, tenant=sql.Literal(tenant)),
        row=sql.SQL("ROW({})::text").format(columns),
    )
    count, first, second = connection.execute(statement).fetchone() or (0, 0, 0)
    return _Digest(int(count), int(first), int(second))


def _drop(connection: psycopg.Connection[Any], tenant: TenantNumber, name: str, tables: Sequence[_Table]) -> None:
    """Drop what an interrupted move has left: the rows of a tenant that has not arrived. Raises CannotMove."""
    places = rows_of(connection, _QUERIES, "lock_moving_tenant", Place, tenant=tenant)
    if not places:
        return
    if not places[0].is_copy(name):
        raise CannotMove("the target serves a tenant with this number: take one of the two servers out of the file")
    for table in reversed(tables):
        connection.execute(sql.SQL("DELETE FROM {} WHERE tenant = {}").format(table.identifier, sql.Literal(tenant)))
    connection.execute(_QUERIES["delete_tenant"], {"tenant": tenant})


def _execute(connection: psycopg.Connection[Any], query: str, /, **parameters: object) -> None:
    connection.execute(_QUERIES[query], parameters)
