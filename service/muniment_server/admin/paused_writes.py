"""A cluster whose writes wait, so that a backup of it is as of one moment.

Each node has snapshots of its own. What a dump reads of one node after another belongs together only if nothing is
written meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from muniment.cli.failures import Failure
from muniment_server.postgres import citus

_SETTINGS = {
    "lock_timeout": "500ms",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
"""The lock is given up before a write that waits for it is taken for one of a deadlock, which takes Postgres a second.
Writes do not wait for a node that hangs. The coordinator notices if the machine that holds the lock is gone."""
_LOCK_ATTEMPTS = 60
_PAUSE = 0.5
_RECOVERY_SECONDS = 30.0


@contextmanager
def paused_writes(admin: str) -> Iterator[None]:
    """Make writes to the cluster wait on all nodes for the block, once those that run have ended. Reads go on.

    *admin* is a superuser's conninfo for the coordinator. The lock ends with its connection, so also if this process is
    killed. Raises Failure if the writes do not pause, and psycopg.Error if they went on before the end of the block.
    """
    with _connect(admin) as connection:
        if not citus.is_coordinator(connection):
            raise Failure("this is a worker of a Citus cluster", "name the database of the coordinator")
        _lock(connection)
        _await_writes(admin)
        yield
        citus.lock_against_writes(connection)


def _connect(admin: str, *, autocommit: bool = False) -> psycopg.Connection:
    options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    return psycopg.connect(admin, autocommit=autocommit, options=options)


def _lock(connection: psycopg.Connection) -> None:
    """Lock all tables. Between two attempts, writes that hold a lock and wait for another one get it."""
    for attempts_left in reversed(range(_LOCK_ATTEMPTS)):
        try:
            citus.lock_against_writes(connection)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            connection.rollback()
            if not attempts_left:
                raise Failure("other transactions write all the time", "run the command when less is written") from None
            time.sleep(_PAUSE)
        else:
            return


def _await_writes(admin: str) -> None:
    """Wait for what goes on though the coordinator has ended it: on nodes to which the connection was lost."""
    with _connect(admin, autocommit=True) as connection:
        end = time.monotonic() + _RECOVERY_SECONDS
        while citus.has_unended_writes(connection):
            if time.monotonic() > end:
                raise Failure(
                    "a node of the cluster has a transaction that does not end",
                    "look for it in pg_prepared_xacts and pg_stat_activity of each node",
                )
            citus.recover_transactions(connection)
            time.sleep(_PAUSE)
