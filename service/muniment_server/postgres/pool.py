"""Connections: a small pool for each role, whose connections are logged in as that role.

The login is the authority: no connection setting carries any, and SET ROLE is never used.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg
from psycopg import conninfo as libpq
from psycopg.generators import send
from psycopg.pq import TransactionStatus
from psycopg.rows import RowMaker, class_row
from psycopg_pool import ConnectionPool, PoolTimeout

from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.driver_errors import domain_error, sqlstate_of, storage_advice
from muniment_server.postgres.engine import PLAIN, AllDoubts, Doubts, Engine, engine_of, settings_of_all
from muniment_server.postgres.epochs import Epoch, EpochGuard, WrongEpoch
from muniment_server.postgres.prepared import PreparedStatements
from muniment_server.telemetry import database_metrics as metrics
from muniment_server.telemetry.repeats import Repeats, warn_once

_R = TypeVar("_R")

_LOG = logging.getLogger("muniment.database")
_QUERIES = queries.load(__package__, "connection.sql")
_MAX_STATEMENT_SECONDS = 30.0
"""The statement timeout when the caller sets no deadline."""
_POOL_PAUSE = 0.1
_POOL_WAIT = 2.0
"""Seconds to wait for a connection. There is one for each thread, so only a database that is away causes a wait."""
_MAX_CONNECTION_SECONDS = 1800.0
_IDLE_SECONDS = 60.0
"""After so long without calls, a pool is empty."""
_CANCEL_TIMEOUT = 2.0
_NEXT = ".next"
"""What the name of a passfile with the coming passwords ends in: see `runtime.passfile`."""
_POSTGRES_17 = 17_00_00
_OPEN_TRANSACTION = {TransactionStatus.INTRANS, TransactionStatus.INERROR}
NETWORK = {"connect_timeout": 2, "keepalives_idle": 10, "tcp_user_timeout": 10_000}
"""A host that drops packets must not block a thread for long. Seconds, seconds, milliseconds."""
SINGLE: Mapping[str, int] = dict.fromkeys(roles.SERVING, 1)
"""One connection for each role."""
SETTINGS: Mapping[str, str] = {
    "TimeZone": "UTC",
    "client_min_messages": "warning",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "5s",
    "synchronous_commit": "on",
    "default_transaction_read_only": "off",
    "log_parameter_max_length_on_error": "0",
    "gin_pending_list_limit": "128kB",
    "search_path": '"$user"',
}
"""The settings of every connection, as Postgres shows them. They override what a role may have set for itself. How many
index entries may wait: see ADR 05. An import lets more of them wait, see `let_entries_wait`."""
SETTINGS_SINCE_17: Mapping[str, str] = {"transaction_timeout": "1min"}
"""The same, from Postgres 17 on. It ends a transaction also while it waits for the rest of what was sent at once. No
statement lasts as long: see `LONGEST_STATEMENT`."""

_NODES_SECONDS = 1.0
"""How long the nodes of a cluster are used before they are asked again for their epochs."""


@dataclass(frozen=True, slots=True)
class _Server:
    system: str
    timeline: int


@dataclass(frozen=True, slots=True)
class _WhoAmI:
    role: str
    login: str
    schema: str
    too_powerful: bool
    is_standby: bool


class WrongRole(psycopg.OperationalError):
    """A connection has another role, or one with too many privileges, or is on a standby, where taint lags behind."""


class WrongSettings(psycopg.OperationalError):
    """A connection does not keep its settings: a pooler in transaction mode gives each transaction another one."""


class NotCommitted(psycopg.OperationalError):
    """A node of the cluster has prepared a transaction, and did not confirm that it has committed it."""


class RoleCursor(psycopg.Cursor[Any]):
    """A cursor that ends a section of the pipeline, if it is in one, before it waits for rows.

    Between two statements of one section, Postgres calls a transaction busy and limits no wait. If the client vanished
    there, the locks would stay, and no raise of that conversation would come through. Between sections, the setting
    `idle_in_transaction_session_timeout` ends it, unless something else was sent after the Sync: even a Flush, which
    Postgres does not answer, makes it forget the limit.
    """

    connection: RoleConnection

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        return super().execute(self.connection.engine.text(query), params, **options)

    def fetchone(self) -> Any:
        self._end_section()
        return super().fetchone()

    def fetchall(self) -> list[Any]:
        self._end_section()
        return super().fetchall()

    def _end_section(self) -> None:
        if self.pgresult is None and self.connection.open_pipeline is not None:
            self.connection.wait(send(self.connection.pgconn))  # `sync` need not send all of a large statement
            self.connection.open_pipeline.sync()  # it waits for the answers, and sends no Flush


class RoleConnection(psycopg.Connection[Any]):
    """A connection that knows its statement timeout, in milliseconds, and the epoch of its server."""

    statement_timeout: int = 0
    answered_at: float = 0.0
    """When it was last pinged, by `time.monotonic`."""
    epoch: Epoch | None = None
    open_pipeline: psycopg.Pipeline | None = None
    engine: Engine = PLAIN
    """That of its database. Set by `apply_settings`."""
    doubts: Doubts | None = None
    _prepared_statements: PreparedStatements | None = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.cursor_factory = RoleCursor

    @classmethod
    def connect(cls, conninfo: str = "", **arguments: Any) -> Self:
        """Connect. If the password is refused, try that of `PASSFILE.next`, and then the passfile again.

        Passwords may be rotated meanwhile. The error lacks its SQLSTATE, but libpq names the passfile if that is 28P01.
        """
        given = libpq.conninfo_to_dict(conninfo)
        passfile = str(given.get("passfile") or "")
        try:
            return super().connect(conninfo, **arguments)
        except psycopg.OperationalError as refused:
            if not passfile or passfile not in str(refused):
                raise
        coming = next_passfile(Path(passfile))
        if coming.exists():
            with contextlib.suppress(psycopg.OperationalError):
                connection = super().connect(conninfo, **{**arguments, "passfile": str(coming)})
                _LOG.warning("the passwords were rotated: rename %s to %s", coming, Path(passfile).resolve())
                return connection
        try:
            return super().connect(conninfo, **arguments)
        except psycopg.OperationalError as refused:
            if passfile in str(refused):
                _log_refused_password(passfile, str(given.get("user")))
            raise

    @contextmanager
    def pipeline(self) -> Iterator[psycopg.Pipeline]:
        """A pipeline. Open none within another: its end would send a Flush, see `RoleCursor`."""
        with super().pipeline() as self.open_pipeline:
            try:
                yield self.open_pipeline
            finally:
                self.open_pipeline = None

    def read(self, query: str, parameters: Mapping[str, object], row: RowMaker[_R]) -> list[_R]:
        """The rows of one query, each made by *row*, outside of a pipeline."""
        return self._statements().rows(query, parameters, row)

    def write(self, query: str, parameters: Mapping[str, object]) -> int:
        """Run one statement outside of a pipeline; return how many rows it wrote."""
        return self._statements().count(query, parameters)

    def read_all(self, queries: Sequence[tuple[str, Mapping[str, object], RowMaker[Any]]]) -> list[list[Any]]:
        """The rows of several queries, in one round trip, outside of a pipeline."""
        return self._statements().rows_of_all(queries)

    def write_all(self, statements: Sequence[tuple[str, Mapping[str, object]]], row: RowMaker[_R]) -> list[_R]:
        """Run *statements* in a transaction; return the rows of the first, each made by *row*. All or none."""
        return self._statements().transaction(statements, row)

    def rollback(self) -> None:
        """Roll back, if there is a transaction. psycopg deallocates all prepared statements then."""
        if self.info.transaction_status is not TransactionStatus.IDLE:
            if self.open_pipeline is not None:
                self.wait(send(self.pgconn))  # as in `RoleCursor`
            super().rollback()
            self._prepared_statements = None

    def _statements(self) -> PreparedStatements:
        if self._prepared_statements is None:
            self._prepared_statements = PreparedStatements(self, self.engine)
        return self._prepared_statements

    def apply_settings(self) -> None:
        """Give the connection its settings, and read them back. Raises WrongSettings.

        They are not sent at log-in, since a pooler refuses or ignores what is.
        """
        settings = SETTINGS if self.info.server_version < _POSTGRES_17 else {**SETTINGS, **SETTINGS_SINCE_17}
        self.engine = engine_of(self)
        if self.doubts is None:
            self.doubts = self.engine.doubts()
            self.add_notice_handler(self.doubts.note)
        settings = {**settings, **self.engine.settings}
        given = {"names": list(settings), "settings": list(settings.values())}
        self.execute(_QUERIES["apply_settings"], given)
        (kept,) = self.execute(_QUERIES["settings"], given).fetchone() or (None,)
        if kept != given["settings"]:
            _LOG.critical(
                "refused a connection that does not keep its settings: is a pooler between? It needs session mode"
            )
            raise WrongSettings

    def ping(self) -> None:
        """Run a statement that does nothing. It fails, or hangs, if the server does not answer."""
        self.execute(_QUERIES["answer"])
        self.answered_at = time.monotonic()

    def backend(self) -> int:
        """The process at the database server that serves the connection now."""
        (process,) = self.execute(_QUERIES["backend"]).fetchone() or (0,)
        return int(process)

    def cancel_now(self) -> None:
        """Cancel the running statement, if the server can be reached. Called from another thread."""
        with contextlib.suppress(psycopg.Error):
            self.cancel_safe(timeout=_CANCEL_TIMEOUT)

    def limit(self, seconds: float | None) -> None:
        """Set the statement timeout. Rounded up to a power of two, so that similar calls need no round trip."""
        wanted = _milliseconds(_at_most(_MAX_STATEMENT_SECONDS, seconds))
        if wanted != self.statement_timeout:
            self.execute(_QUERIES["set_statement_timeout"], {"milliseconds": str(wanted)})
            self.statement_timeout = wanted


def next_passfile(passfile: Path) -> Path:
    """Where the coming passwords are: beside the file itself, if *passfile* is a symbolic link."""
    file = passfile.resolve()
    return file.with_name(file.name + _NEXT)


@functools.cache
def _log_refused_password(passfile: str, role: str) -> None:
    """Log it once: a connection is tried for each call."""
    _LOG.error(
        "the database refused the password of %s in %s: use the passfile that `muniment migrate` wrote last",
        role,
        passfile,
    )


def _at_most(longest: float, remaining: float | None) -> float:
    return longest if remaining is None else min(longest, remaining)


def _milliseconds(seconds: float) -> int:
    return 1 << max(4, int(seconds * 1000).bit_length())


LONGEST_STATEMENT = _milliseconds(_MAX_STATEMENT_SECONDS)
"""No statement of a serving role lasts longer, in milliseconds."""


class _Pool(ConnectionPool[RoleConnection]):
    """A pool that forgets callers who have given up.

    psycopg's pool keeps each of them until it has a connection: while the database is away, they would fill the memory.
    """

    def getconn(self, timeout: float | None = None) -> RoleConnection:
        try:
            return super().getconn(timeout)
        except PoolTimeout:
            with self._lock:
                while self._waiting and self._waiting[0].error:
                    self._waiting.popleft()
            raise


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """How many connections a pool has, and how many threads wait for one."""

    idle: int
    used: int
    waiting: int


class Database:
    """The database as the serving roles see it. A role's pool opens when it is first needed."""

    def __init__(
        self,
        conninfo: Callable[[str], str],
        *,
        pool_sizes: Mapping[str, int],
        epochs: EpochGuard | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._pool_sizes = pool_sizes
        self._epochs = epochs or EpochGuard()
        self._pools: dict[str, _Pool] = {}
        self._broke_at = 0.0
        """When a connection was found broken last."""
        self._nodes_due = 0.0
        """When the nodes of a cluster must be asked again. 0: before the next call."""
        self._lock = threading.Lock()
        self._repeats = Repeats()

    @contextmanager
    def connection(self, role: str, deadline: Deadline) -> Iterator[RoleConnection]:
        """A connection logged in as *role*, until the block ends or *deadline* expires.

        What the driver raises within the block becomes a domain error: see `driver_errors`.
        """
        pool = self._pools.get(role) or self._open(role)
        try:
            connection = self._check_out(pool, _at_most(_POOL_WAIT, deadline.remaining()))
            try:
                with deadline.canceling(connection.cancel_now):
                    connection.limit(deadline.remaining())
                    try:
                        yield connection
                    finally:
                        if connection.doubts:  # whatever else was found: rows may be old
                            raise NotCommitted
            finally:
                self._give_back(pool, connection)
        except psycopg.Error as error:
            metrics.DATABASE_FAILURES.labels(role, sqlstate_of(error)).inc()
            if advice := storage_advice(error):
                warn_once(_LOG, self._repeats, f"{advice} (SQLSTATE {sqlstate_of(error)})")
            raise domain_error(error) from None

    def log_in(self, role: str, deadline: Deadline) -> None:
        """Open a connection beside the pool, verify it as the pool does, and close it. Raises a domain error.

        Those of the pool go on while a database that is shutting down lets in no new one.
        """
        try:
            with (
                RoleConnection.connect(self._conninfo(role), autocommit=True, **NETWORK) as connection,
                deadline.canceling(connection.cancel_now),
            ):
                self._verify(connection, role)
        except psycopg.Error as error:
            raise domain_error(error) from None

    def loads(self) -> Iterator[tuple[str, PoolLoad]]:
        """The connections of each role."""
        for role, pool in list(self._pools.items()):
            found = pool.get_stats()
            size, idle = found.get("pool_size", 0), found.get("pool_available", 0)
            yield role, PoolLoad(idle, size - idle, found.get("requests_waiting", 0))

    def close(self) -> None:
        """Close all pools."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()

    def _open(self, role: str) -> _Pool:
        with self._lock:
            if role not in self._pools:
                self._pools[role] = self._pool(role)
            return self._pools[role]

    def _pool(self, role: str) -> _Pool:
        return _Pool(
            self._conninfo(role),
            connection_class=RoleConnection,
            kwargs={
                "autocommit": True,
                "prepare_threshold": 0,
                **NETWORK,
            },
            configure=lambda connection: self._verify(connection, role),
            min_size=0,
            max_size=self._pool_sizes[role],
            max_lifetime=_MAX_CONNECTION_SECONDS,
            max_idle=_IDLE_SECONDS / self._pool_sizes[role],  # after which the pool closes one that was not needed
            reconnect_timeout=0.0,  # no back-off: the next call tries again
            open=True,
            name=role,
        )

    def _check_out(self, pool: _Pool, seconds: float) -> RoleConnection:
        """A connection, within *seconds*. Asks repeatedly: each time the pool tries to connect again.

        Closes those that have broken since they were used, or whose server was overtaken.
        """
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(PoolTimeout):
                connection = pool.getconn(timeout=_POOL_PAUSE)
                if (
                    not self._epochs.is_behind(connection.epoch)
                    and self._is_alive(connection)
                    and self._has_admitted_nodes(connection, end - time.monotonic())
                ):
                    return connection
                connection.close()
                pool.putconn(connection)
            if time.monotonic() >= end:
                raise PoolTimeout

    def _is_alive(self, connection: RoleConnection) -> bool:
        """Whether *connection* answers. It is pinged only if another has broken since: then all may have."""
        if connection.answered_at < self._broke_at:
            try:
                connection.ping()
            except psycopg.Error:
                return False
        return True

    def _has_admitted_nodes(self, connection: RoleConnection, seconds: float) -> bool:
        """Whether the nodes of a cluster may be used, within *seconds*. On plain Postgres there are none.

        The coordinator connects to a node anew without notice, perhaps to another server. So the nodes are asked every
        second, by the first call; the others go on. Once a node is refused, each call asks. If a node was promoted, or
        is new, *connection* is not used either: through the coordinator, it may still reach the server before.
        """
        asked = time.monotonic()
        if connection.engine.is_plain or asked < self._nodes_due:
            return True
        if self._nodes_due:  # the others go on meanwhile, unless a node was refused last
            self._nodes_due = asked + _NODES_SECONDS
        known = connection.epoch
        try:
            connection.limit(max(_POOL_PAUSE, seconds))
            known = self._epochs.admit(epoch_of(connection))
        except psycopg.errors.QueryCanceled:  # a node is silent, and stops no one
            pass
        except psycopg.Error:
            self._nodes_due = 0.0
            return False
        self._nodes_due = asked + _NODES_SECONDS
        return known == connection.epoch

    def _verify(self, connection: RoleConnection, role: str) -> None:
        """Refuse a connection with the wrong role or to the wrong server, and close it, which the pool would not."""
        try:
            verify(connection, role)
            connection.epoch = self._epochs.admit(epoch_of(connection, asks_nodes=not self._nodes_due))
        except BaseException:
            connection.close()
            raise

    def _give_back(self, pool: _Pool, connection: RoleConnection) -> None:
        """Return it clean."""
        if connection.info.transaction_status in _OPEN_TRANSACTION:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
        if connection.doubts:
            connection.close()
        if connection.closed:
            self._broke_at = time.monotonic()
        pool.putconn(connection)


def verify(connection: RoleConnection, role: str) -> None:
    """Give a connection its settings. Refuse it if it is not exactly what *role* needs.

    Raises WrongSettings or WrongRole.
    """
    connection.apply_settings()
    found = connection.cursor(row_factory=class_row(_WhoAmI)).execute(_QUERIES["who_am_i"]).fetchone()
    if found != _WhoAmI(role, role, role, too_powerful=False, is_standby=False):
        _LOG.critical("refused a connection for %s: another role, too many privileges, or on a standby", role)
        raise WrongRole
    connection.limit(None)


def epoch_of(connection: psycopg.Connection[Any], *, asks_nodes: bool = True) -> Epoch:
    """The epoch of the server of *connection*, and of its nodes, if it is the coordinator of a cluster.

    Without *asks_nodes*, as if none answered: a silent node would delay the answer by two seconds.
    Raises WrongEpoch on a standby, which writes no timeline.
    """
    try:
        found = connection.cursor(row_factory=class_row(_Server)).execute(_QUERIES["epoch"]).fetchone()
    except psycopg.errors.ObjectNotInPrerequisiteState:
        raise WrongEpoch("it is a standby: connect to the primary") from None
    assert found is not None  # a query without FROM has one row
    return Epoch(found.system, found.timeline, engine_of(connection).epochs_of_nodes(connection) if asks_nodes else {})


@contextmanager
def administrator(admin: str, *, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """A connection by the conninfo *admin* for the block, at whose end it commits.

    Raises NotCommitted at the end if a node of a cluster did not confirm a commit.
    """
    doubts = AllDoubts()
    with psycopg.connect(admin, autocommit=autocommit) as connection:
        connection.add_notice_handler(doubts.note)
        yield connection
    if doubts:
        raise NotCommitted


def operator_conninfo(admin: str) -> str:
    """The conninfo of an operator: the administrator's own login, acting as the owner.

    It has the settings of all engines, since that of the database is not known before it connects. A Postgres
    that hangs is waited for ten seconds.
    """
    patient = libpq.make_conninfo(admin, connect_timeout=libpq.conninfo_to_dict(admin).get("connect_timeout", 10))
    return with_settings(patient, {**SETTINGS, **settings_of_all(), "role": roles.OWNER})


def with_settings(conninfo: str, settings: Mapping[str, str]) -> str:
    """*conninfo* with *settings*, after the options that it has, or else PGOPTIONS: some addresses need them."""
    given = libpq.conninfo_to_dict(conninfo).get("options") or os.environ.get("PGOPTIONS", "")
    added = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return libpq.make_conninfo(conninfo, options=f"{given} {added}".strip())
