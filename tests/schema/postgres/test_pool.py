"""The pools of connections: none is used that has broken, and none is kept that is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any
from unittest import mock

import psycopg
import pytest
from psycopg import conninfo as libpq

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import Unavailable
from muniment_server.engines.citus import pausing as paused_writes
from muniment_server.engines.citus.distributing import distribution
from muniment_server.postgres import pool, roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.postgres.pool import operator_conninfo
from tests.support.commands import wait_until
from tests.support.databases import Database

PUBLIC, INTERNAL = (label.role for label in (Label.PUBLIC, Label.INTERNAL))


@contextmanager
def connected(database: Database, size: int = 1) -> Iterator[RoleDatabase]:
    """The database as the serving roles see it."""
    made = RoleDatabase(database.conninfo, pool_sizes=dict.fromkeys(roles.SERVING, size))
    try:
        yield made
    finally:
        made.close()


def ask(connections: RoleDatabase, role: str) -> None:
    """Use a connection of *role* once."""
    with connections.connection(role, Deadline(5)) as connection:
        connection.ping()


def backends(database: Database) -> int:
    """How many connections of the levels there are."""
    with database.as_admin() as admin:
        (count,) = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = ANY(%s)",
            [list(roles.LABELS)],
        ).fetchone() or (0,)
    return int(count)


def end_connections(database: Database) -> None:
    """End every connection, as a restart of Postgres does."""
    with database.as_admin() as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_once_a_connection_has_broken_no_other_broken_one_is_used(database: Database) -> None:
    with connected(database) as connections:
        for role in roles.LABELS:
            ask(connections, role)
        end_connections(database)
        with pytest.raises(Unavailable):
            ask(connections, PUBLIC)

        for role in roles.LABELS:
            ask(connections, role)


def test_an_idle_pool_becomes_empty(database: Database) -> None:
    with mock.patch.object(pool, "_IDLE_SECONDS", 2.0), connected(database, size=3) as connections:
        for role in (PUBLIC, INTERNAL):
            with connections.connection(role, Deadline(5)), connections.connection(role, Deadline(5)):
                pass
        assert backends(database) == 4
        wait_until(lambda: backends(database) == 0, "idle connections stay open")

        ask(connections, PUBLIC)


def test_the_database_ends_a_statement_of_a_call_whose_deadline_has_passed(database: Database) -> None:
    """Also if the cancel of the server does not reach it."""
    limits = []
    with connected(database) as connections:
        for deadline in (Deadline(10), Deadline(), Deadline(10)):
            with connections.connection(PUBLIC, deadline) as connection:
                found: Any = connection.execute("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'")
                limits += found.fetchone()

    short, longest, again = limits
    assert max(short, again) <= 2**14 < longest


def test_a_connection_that_is_refused_is_closed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = []

    def refuse(connection: pool.RoleConnection, _: str) -> None:
        refused.append(connection)
        raise pool.WrongRole

    monkeypatch.setattr(pool, "verify", refuse)
    with connected(database) as connections, pytest.raises(Unavailable):
        ask(connections, PUBLIC)

    wait_until(lambda: all(connection.closed for connection in refused), "all are closed")
    assert refused


def test_callers_who_gave_up_while_the_database_was_away_are_forgotten(database: Database) -> None:
    """Otherwise they would fill the memory until it is back, and the metrics would count them as waiting."""
    away = RoleDatabase(lambda role: database.conninfo(role).replace("test_", "not_there_"), pool_sizes=pool.SINGLE)

    def call() -> None:
        with pytest.raises(Unavailable), away.connection(PUBLIC, Deadline(0.5)):
            pass

    with closing(away), ThreadPoolExecutor(10) as callers:
        for called in [callers.submit(call) for _ in range(30)]:
            called.result()
        ((_, load),) = away.loads()

    assert load.waiting <= 1


def through_operator(admin: str) -> psycopg.Connection[Any]:
    return psycopg.connect(operator_conninfo(admin))


@contextmanager
def through_distribution(admin: str) -> Iterator[psycopg.Connection[Any]]:
    with distribution(admin, None) as distributing:
        yield distributing._connection


@pytest.mark.parametrize("connect", [through_operator, paused_writes._connect, through_distribution])
@pytest.mark.parametrize(("options", "seed"), [("-c geqo_seed=0.5", "0.5"), ("", "0.25")])
def test_operators_connections_keep_the_options_of_their_url_or_of_pgoptions(
    database: Database, monkeypatch: pytest.MonkeyPatch, connect: Any, options: str, seed: str
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c geqo_seed=0.25")
    with connect(libpq.make_conninfo(database.admin, options=options) if options else database.admin) as connection:
        assert connection.execute("SELECT current_setting('geqo_seed')").fetchone() == (seed,)
