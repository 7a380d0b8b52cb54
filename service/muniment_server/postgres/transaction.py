"""Transactions of several steps. A single write begins and ends its own in `prepared.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from muniment_server.postgres import queries

_QUERIES = queries.load(__package__, "connection.sql")


def lift_idle_timeout(connection: psycopg.Connection[Any]) -> None:
    """Let the current transaction of *connection* be idle without a limit. For operators' commands."""
    connection.execute(_QUERIES["lift_idle_timeout"])


def login_of(connection: psycopg.Connection[Any]) -> str:
    """Who has logged in on *connection*, whatever role it acts as."""
    (login,) = connection.execute(_QUERIES["login"]).fetchone() or ("",)
    return str(login)


@contextmanager
def transaction(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Run the block in one transaction, pipelined: statements wait only where a result is fetched.

    Commits at the end of the block. Rolls back, and raises, if the block or one of its statements fails.
    """
    try:
        with connection.pipeline():
            connection.execute("BEGIN")
            try:
                yield
            except BaseException:
                # Not after the pipeline: its end sends a Flush, after which Postgres limits no wait. See `RoleCursor`.
                _roll_back(connection)
                raise
            connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: psycopg.Connection[Any]) -> None:
    """Roll back, if there is a transaction. A connection that is lost has none."""
    with contextlib.suppress(psycopg.Error):
        connection.rollback()
