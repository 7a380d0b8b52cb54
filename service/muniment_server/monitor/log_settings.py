"""Settings with which Postgres would log the parameters of our statements: contents, names and queries.

A Postgres with default settings logs none: parameters are always bound, and no caller can make a statement break a
constraint, so that no row is logged with the error either (tests/calls/transport/test_external_log.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from muniment_server.postgres import queries
from muniment_server.postgres.pool import LONGEST_STATEMENT

_QUERIES = queries.load(__package__, "log_settings.sql")
_NAMES = (
    "log_statement",
    "log_min_duration_statement",
    "log_min_duration_sample",
    "log_statement_sample_rate",
    "log_transaction_sample_rate",
    "log_parameter_max_length",
    "log_parameter_max_length_on_error",
    "auto_explain.log_min_duration",
    "auto_explain.log_parameter_max_length",
    "pgaudit.log",
    "pgaudit.log_parameter",
)
_STATEMENTS = {"mod", "all"}
"""The values of log_statement with which statements of the serving roles are logged. `ddl` logs only migrations."""
_OFF = "-1"
_REMEDY = "set log_parameter_max_length = 0"
"""As the database's administrator: ALTER DATABASE … SET, or in postgresql.conf."""


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
    rows = connection.cursor(row_factory=tuple_row).execute(_QUERIES["log_settings"], {"names": list(_NAMES)})
    return list(log_findings(dict(rows.fetchall())))


def problems(connection: psycopg.Connection[Any]) -> list[str]:
    """The findings that close the gate. *connection* has the settings of those that serve."""
    return [found.text for found in findings(connection) if found.closes_gate]


def log_findings(settings: Mapping[str, str]) -> Iterator[LogFinding]:
    """What *settings* would leave in the log. Durations are in milliseconds, as in pg_settings."""
    if settings["log_parameter_max_length"] != "0":
        yield from _by_statement(settings)
        yield from _by_duration(settings)
    yield from _on_error(settings)
    yield from _by_libraries(settings)


def _by_statement(settings: Mapping[str, str]) -> Iterator[LogFinding]:
    statements = settings["log_statement"]
    if statements != "none":
        yield LogFinding(
            f"log_statement is {statements}, so Postgres logs statements with their parameters: {_REMEDY}, or "
            "log_statement = none",
            closes_gate=statements in _STATEMENTS,
        )
    if float(settings["log_transaction_sample_rate"]) > 0:
        yield LogFinding(
            "log_transaction_sample_rate is not 0, so Postgres logs statements with their parameters: "
            f"{_REMEDY}, or log_transaction_sample_rate = 0",
            closes_gate=True,
        )


def _by_duration(settings: Mapping[str, str]) -> Iterator[LogFinding]:
    names = ["log_min_duration_statement"]
    if float(settings["log_statement_sample_rate"]) > 0:
        names.append("log_min_duration_sample")
    for name in names:
        if settings[name] != _OFF:
            yield LogFinding(
                f"{name} is {settings[name]} ms, so Postgres logs slow statements with their parameters: "
                f"{_REMEDY}, or {name} = -1",
                closes_gate=int(settings[name]) <= LONGEST_STATEMENT,
            )


def _on_error(settings: Mapping[str, str]) -> Iterator[LogFinding]:
    """Server connections set it to 0. Another value means that the setting did not reach Postgres."""
    if settings["log_parameter_max_length_on_error"] != "0":
        yield LogFinding(
            "log_parameter_max_length_on_error is not 0, so Postgres logs the parameters of failed statements: "
            "set it to 0",
            closes_gate=True,
        )


def _by_libraries(settings: Mapping[str, str]) -> Iterator[LogFinding]:
    explained = settings.get("auto_explain.log_min_duration", _OFF)
    if explained != _OFF and settings.get("auto_explain.log_parameter_max_length", "0") != "0":
        yield LogFinding(
            "auto_explain logs the parameters of slow statements: set auto_explain.log_parameter_max_length = 0, or "
            "auto_explain.log_min_duration = -1",
            closes_gate=int(explained) <= LONGEST_STATEMENT,
        )
    if settings.get("pgaudit.log_parameter") == "on":
        yield LogFinding(
            "pgaudit logs the parameters of what it audits: set pgaudit.log_parameter = off",
            closes_gate=settings.get("pgaudit.log", "none") != "none",
        )
