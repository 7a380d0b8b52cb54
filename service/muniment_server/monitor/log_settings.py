"""Settings with which Postgres would log the parameters of our statements: contents, names and queries.

A Postgres with default settings logs none: parameters are always bound, and no caller can make a statement break a
constraint, so that no row is logged with the error either (tests/calls/transport/test_external_log.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row

from muniment_server.postgres import queries
from muniment_server.postgres.pool import LONGEST_STATEMENT

_QUERIES = queries.load(__package__, "log_settings.sql")


@dataclass(frozen=True, slots=True)
class LogFinding:
    """A setting with which the database logs what it should not, and what to do about it."""

    text: str
    closes_gate: bool
    """Whether it certainly logs parameters of the serving roles, at once or whenever a caller wants it to.

    Serving with it would copy RESTRICTED content into a log that other systems read. A minimum duration is no
    protection below LONGEST_STATEMENT, because any caller can delay a statement by holding a lock. Other settings
    affect only other connections, or statements without content.
    """


def findings(connection: psycopg.Connection[Any]) -> list[LogFinding]:
    """What the settings of *connection* would leave in the log."""
    cursor = connection.cursor(row_factory=class_row(LogFinding))
    return cursor.execute(_QUERIES["log_findings"], {"longest": LONGEST_STATEMENT}).fetchall()
