"""Whether this machine and the database agree on the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from muniment_server.postgres import queries
from muniment_server.postgres.rows import values_of

_MOST = timedelta(minutes=1)
_QUERIES = queries.load(__package__, "clocks.sql")


def warnings(connection: psycopg.Connection[Any]) -> list[str]:
    """A warning if the clocks differ by more than a minute, else nothing.

    A database clock that is ahead ends sessions and expires items early.
    """
    difference: timedelta = values_of(connection, _QUERIES, "time")[0] - datetime.now(UTC)
    if abs(difference) <= _MOST:
        return []
    direction = "ahead of" if difference > timedelta() else "behind"
    seconds = round(abs(difference).total_seconds())
    return [f"the clock of the database is {seconds} s {direction} this machine's: synchronize both with NTP"]
