"""Pauses the writes of a cluster, so that a backup is as of one moment.

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
from muniment_server.engines.citus import cluster
from muniment_server.postgres.pool import with_settings

_SETTINGS = {
    "lock_timeout": "500ms",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
"""lock_timeout is shorter than Postgres's deadlock_timeout of one second, so the backup gives up its lock before a
write that waits for it could be ended as part of a deadlock. statement_timeout ends the backup, and with it the lock,
if a node hangs. With the keepalives, the coordinator notices if the machine that holds the lock is gone."""
_LOCK_ATTEMPTS = 60
_PAUSE = 0.5
_RECOVERY_SECONDS = 30.0


@contextmanager
def paused_writes(admin: str) -> Iterator[None]:
    """Pause writes on all nodes of the cluster during the block, which begins once running writes have ended.

    Reads go on. *admin* is a superuser's conninfo for the coordinator. The lock ends with its connection, so also if
    this process is killed. Raises Failure if the writes do not pause, and psycopg.Error if they went on before the end
    of the block.
    """
    with _connect(admin) as connection:
        _lock(connection)
        _await_writes(admin)
        yield
        cluster.lock_against_writes(connection)  # fails if a node has lost the lock


def _connect(admin: str, *, autocommit: bool = False) -> psycopg.Connection:
    return psycopg.connect(with_settings(admin, _SETTINGS), autocommit=autocommit)


def _lock(connection: psycopg.Connection) -> None:
    """Lock all tables. Between two attempts, writes that hold a lock and wait for another one get it."""
    for attempts_left in reversed(range(_LOCK_ATTEMPTS)):
        try:
            cluster.lock_against_writes(connection)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            connection.rollback()
            if not attempts_left:
                raise Failure(
                    "the tables could not be locked within a minute, because of other writes",
                    "run the command when there are fewer",
                ) from None
            time.sleep(_PAUSE)
        else:
            return


def _await_writes(admin: str) -> None:
    """Wait until no node writes. A node may go on after its transaction has ended at the coordinator, if it lost the
    connection.
    """
    with _connect(admin, autocommit=True) as connection:
        end = time.monotonic() + _RECOVERY_SECONDS
        while cluster.has_unfinished_writes(connection):
            if time.monotonic() > end:
                raise Failure(
                    "a transaction on a node of the cluster has not ended within 30 seconds",
                    "look for it in pg_prepared_xacts and pg_stat_activity of each node",
                )
            cluster.recover_transactions(connection)
            time.sleep(_PAUSE)
