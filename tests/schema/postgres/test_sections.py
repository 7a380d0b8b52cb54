"""In a transaction of several round trips, Postgres can tell that its client is gone wherever the client waits.

It limits that wait only from the answer to a Sync until the next message, whatever that is: see `pool.RoleCursor`. So
the messages are read here, as libpq writes them down. `tests/proof/faults/test_partitions.py` cuts the network instead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from psycopg.errors import DivisionByZero
from psycopg.pq import Trace

from muniment_server.domain.classification import Classification
from muniment_server.postgres import pool
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import SINGLE, RoleConnection
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.postgres.transaction import transaction
from tests.support.commands import wait_until
from tests.support.databases import Database
from tests.support.labels import untrusted

_POSTGRES_17 = 17_00_00
_ROLE = untrusted(Classification.PUBLIC).role


class Message(NamedTuple):
    """What libpq writes down of a message: F is from the client, B from the database."""

    direction: str
    length: str
    kind: str
    rest: str = ""


class _Refused(Exception):
    """The caller may not do that."""


@contextmanager
def _connected(migrated: Database) -> Iterator[RoleConnection]:
    database = RoleDatabase(migrated.conninfo, pool_sizes=SINGLE)
    try:
        with database.connection(_ROLE, Deadline(5)) as connection:
            yield connection
    finally:
        database.close()


@contextmanager
def _ended_if_it_hangs(connection: RoleConnection, migrated: Database) -> Iterator[None]:
    """The database ends *connection* if the block takes longer than ten seconds."""
    with migrated.as_admin() as admin:
        ending = threading.Timer(10, admin.execute, ("SELECT pg_terminate_backend(%s)", [connection.backend()]))
        ending.start()
        try:
            yield
        finally:
            ending.cancel()


def _commits(connection: RoleConnection) -> None:
    with transaction(connection):
        cursor = connection.execute("SELECT 1")
        connection.execute("SELECT 2")
        assert cursor.fetchall() == [(1,)]
        assert connection.execute("SELECT 3").fetchone() == (3,)


def _is_refused(connection: RoleConnection) -> None:
    with suppress(_Refused), transaction(connection):
        connection.execute("SELECT 1")
        connection.execute("SELECT 2").fetchone()
        raise _Refused


def _fails_before_it_is_sent(connection: RoleConnection) -> None:
    with transaction(connection):
        connection.execute("SELECT 1 / 0")
        for _ in range(5):
            connection.execute("SELECT length(%s)", ["x" * 20_000_000])


def _is_refused_at_once(connection: RoleConnection) -> None:
    with suppress(_Refused), transaction(connection):
        connection.execute("SELECT 1")
        raise _Refused


def test_a_statement_that_is_larger_than_all_buffers_is_sent_to_its_end(migrated: Database) -> None:
    """Otherwise the database waits for the rest, and the server for the answer, with what it has locked."""
    with _connected(migrated) as connection, _ended_if_it_hangs(connection, migrated), transaction(connection):
        assert connection.execute("SELECT length(%s)", ["x" * 20_000_000]).fetchone() == (20_000_000,)


def test_a_transaction_that_fails_before_a_large_statement_is_sent_is_rolled_back(migrated: Database) -> None:
    """The database reads on until the end of the section, and answers only then."""
    with _connected(migrated) as connection, _ended_if_it_hangs(connection, migrated):
        with pytest.raises(DivisionByZero):
            _fails_before_it_is_sent(connection)
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("run", [_commits, _is_refused, _is_refused_at_once])
def test_in_a_transaction_nothing_is_sent_between_a_sync_and_its_answer(
    run: Callable[[RoleConnection], None], migrated: Database, tmp_path: Path
) -> None:
    with _connected(migrated) as connection, (tmp_path / "trace").open("w+b") as trace:
        connection.pgconn.trace(trace.fileno())
        connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        run(connection)
        connection.pgconn.untrace()
        trace.seek(0)
        messages = [Message(*line.split("\t")) for line in trace.read().decode().splitlines()]

    waits = list(_waits(messages))
    assert ("T", []) in waits
    assert [sent for state, sent in waits if state == "T" and sent] == []


@pytest.mark.parametrize("limit", ["500ms", "0"])
def test_a_transaction_of_which_only_a_part_arrives_ends(
    limit: str, migrated: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Postgres 17 on, and because of the limit."""
    monkeypatch.setattr(pool, "SETTINGS_SINCE_17", {"transaction_timeout": limit})
    with _connected(migrated) as connection, migrated.as_admin() as admin:
        has_limit = limit != "0" and connection.info.server_version >= _POSTGRES_17
        process = connection.backend()
        connection.pgconn.enter_pipeline_mode()
        connection.pgconn.send_query_params(b"BEGIN", None)
        connection.pgconn.send_flush_request()
        connection.pgconn.flush()

        def runs() -> bool:
            return bool(admin.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [process]).fetchall())

        if has_limit:
            wait_until(lambda: not runs(), "the transaction ends")
        else:
            time.sleep(2)
            assert runs()
        connection.close()


def _waits(messages: Sequence[Message]) -> Iterator[tuple[str, list[str]]]:
    """The state of the transaction at each answer to a Sync, and what was sent meanwhile."""
    sent: list[str] | None = None
    for message in messages:
        if message.direction == "F" and sent is not None:
            sent.append(message.kind)
        elif message.kind == "Sync":
            sent = []
        elif message.kind == "ReadyForQuery" and sent is not None:
            yield message.rest.strip(), sent
            sent = None
