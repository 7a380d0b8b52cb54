"""Whether this machine and the database agree on the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import class_row

from muniment_server.postgres import queries

_MOST = timedelta(minutes=1)
_QUERIES = queries.load(__package__, "clocks.sql")


@dataclass(frozen=True, slots=True)
class _Time:
    time: datetime


def warnings(connection: psycopg.Connection[Any]) -> list[str]:
    """A warning if the clocks differ by more than a minute, else nothing.

    A database clock that is ahead ends sessions and expires items early.
    """
    found = connection.cursor(row_factory=class_row(_Time)).execute(_QUERIES["time"]).fetchone()
    assert found is not None  # a query without FROM has one row
    difference = found.time - datetime.now(UTC)
    if abs(difference) <= _MOST:
        return []
    direction = "ahead of" if difference > timedelta() else "behind"
    seconds = round(abs(difference).total_seconds())
    return [f"the clock of the database is {seconds} s {direction} this machine's: synchronize both with NTP"]
