"""Connections: a small pool for each role, logged in as that role.

The role is the context: no setting of a connection carries authority, and none is ever changed by SET ROLE.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo as libpq
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from muniment_server.postgres import queries, roles
from muniment_server.postgres.deadline import Lifetime
from muniment_server.postgres.driver_errors import in_our_words

_LOG = logging.getLogger("muniment.database")
_QUERIES = queries.load("connection")
_LONGEST_STATEMENT = 30.0
"""Seconds a statement may run when the caller sets no deadline."""
_POOL_PAUSE = 0.1
_POOL_WAIT = 2.0
"""Seconds to wait for a connection. There is one for each thread: only a database that is away makes it wait."""
_LIFETIME = 1800.0
_SECONDS_TO_CANCEL = 2.0
_UNDONE = {TransactionStatus.INTRANS, TransactionStatus.INERROR}
"""What was judged and refused, and what failed, is undone when the connection is given back."""
NETWORK = {"connect_timeout": 2, "keepalives_idle": 10, "tcp_user_timeout": 10_000}
"""A host that swallows packets may not hold a thread for long. Seconds, seconds, milliseconds."""
_SETTINGS = " ".join(
    f"-c {setting}"
    for setting in (
        "TimeZone=UTC",
        "client_min_messages=warning",
        "jit=off",
        "plan_cache_mode=force_generic_plan",
        "lock_timeout=5s",
        "idle_in_transaction_session_timeout=5s",
        "synchronous_commit=on",
        "default_transaction_read_only=off",
        'search_path="$user"',
    )
)
"""What every connection brings: it wins over what a role may have set for itself."""


class WrongRole(psycopg.OperationalError):
    """A connection is another role's, or of one with too much power, or on a standby, where taint lags behind."""


class RoleConnection(psycopg.Connection[Any]):
    """A connection that knows which statement timeout it has, in milliseconds."""

    statement_timeout: int = 0

    def cancel_now(self) -> None:
        """Cancel the statement that runs, if the server can be told. Called from another thread."""
        with contextlib.suppress(psycopg.Error):
            self.cancel_safe(timeout=_SECONDS_TO_CANCEL)

    def limit(self, seconds: float | None) -> None:
        """Bound the statements to come. Rounded up to a power of two, so that calls alike need no round trip."""
        wanted = _milliseconds(_within(_LONGEST_STATEMENT, seconds))
        if wanted != self.statement_timeout:
            self.execute(_QUERIES["set_statement_timeout"], {"milliseconds": str(wanted)})
            self.statement_timeout = wanted


def _taken_from(pool: ConnectionPool[RoleConnection], seconds: float) -> RoleConnection:
    """A connection, within *seconds*. Asked for again and again: each time the pool tries to connect anew."""
    end = time.monotonic() + seconds
    while True:
        try:
            return pool.getconn(timeout=_POOL_PAUSE)
        except PoolTimeout:
            if time.monotonic() >= end:
                raise


def _within(longest: float, remaining: float | None) -> float:
    return longest if remaining is None else min(longest, remaining)


def _milliseconds(seconds: float) -> int:
    return 1 << max(4, int(seconds * 1000).bit_length())


class Database:
    """The database as the serving roles see it. Pools open when a role is first needed."""

    def __init__(self, conninfo: Callable[[str], str], *, pool_size: int) -> None:
        self._conninfo = conninfo
        self._pool_size = pool_size
        self._pools: dict[str, ConnectionPool[RoleConnection]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def connection(self, role: str, lifetime: Lifetime) -> Iterator[RoleConnection]:
        """A connection logged in as *role*, for as long as the block and *lifetime* last.

        What the driver raises within the block is raised in our words: see `failures`.
        """
        pool = self._pools.get(role) or self._open(role)
        try:
            connection = _taken_from(pool, _within(_POOL_WAIT, lifetime.remaining()))
            try:
                lifetime.cancels(connection.cancel_now)
                connection.limit(lifetime.remaining())
                yield connection
            finally:
                lifetime.cancels(None)
                self._give_back(pool, connection)
        except psycopg.Error as error:
            raise in_our_words(error) from None

    def close(self) -> None:
        """Close all pools."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()

    def _open(self, role: str) -> ConnectionPool[RoleConnection]:
        with self._lock:
            if role not in self._pools:
                self._pools[role] = self._pool(role)
            return self._pools[role]

    def _pool(self, role: str) -> ConnectionPool[RoleConnection]:
        return ConnectionPool(
            self._conninfo(role),
            connection_class=RoleConnection,
            kwargs={
                "autocommit": True,
                "row_factory": namedtuple_row,
                "prepare_threshold": 0,
                "options": _SETTINGS,
                **NETWORK,
            },
            configure=lambda connection: verify(connection, role),
            min_size=0,
            max_size=self._pool_size,
            max_lifetime=_LIFETIME,
            max_idle=_LIFETIME,
            reconnect_timeout=0.0,  # no waiting longer each time: the next call tries again
            open=True,
            name=role,
        )

    def _give_back(self, pool: ConnectionPool[RoleConnection], connection: RoleConnection) -> None:
        """Return it clean. One that broke is a sign that the others did too: look at them now, not call by call."""
        if connection.info.transaction_status in _UNDONE:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
        broken = connection.closed
        pool.putconn(connection)
        if broken:
            threading.Thread(target=self._check, daemon=True).start()

    def _check(self) -> None:
        """Replace every idle connection that is broken, of all roles."""
        for pool in list(self._pools.values()):
            pool.check()


def verify(connection: RoleConnection, role: str) -> None:
    """Refuse a connection that is not what it is for. Raises WrongRole."""
    found: Any = connection.execute(_QUERIES["who_am_i"]).fetchone()
    if found.role != role or found.login != role or found.too_powerful or found.schema != role or found.is_standby:
        _LOG.critical("a connection for %s is another role's, too powerful, or on a standby: refused", role)
        raise WrongRole
    connection.limit(None)


def operator_conninfo(admin: str) -> str:
    """The conninfo of an operator: the administrator's own, in the place of the owner."""
    return libpq.make_conninfo(admin, options=f"{_SETTINGS} -c role={roles.OWNER}")
