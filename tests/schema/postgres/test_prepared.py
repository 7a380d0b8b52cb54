"""Single reads by prepared statements: as a cursor of psycopg reads, and never in the way of the next call."""

from __future__ import annotations

import contextlib
import threading
import uuid
from datetime import UTC, datetime
from typing import NamedTuple

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import DeadlineExceeded, Unavailable
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import SINGLE, Database, RoleConnection
from muniment_server.postgres.prepared import PreparedStatements

VALUES = {
    "nothing": None,
    "text": "50 % of 'a' \\ \"b\" $1 %s",
    "empty": "",
    "small": 7,
    "large": 2**40,
    "truth": False,
    "number": 0.1,
    "bytes": b"\x00\xff",
    "level": Classification.RESTRICTED,
    "id": uuid.UUID(int=5),
    "time": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "texts": ["a", "b,c", '"'],
    "bits": [1, None, 2**33],
}
TYPES = {
    "nothing": "text", "text": "text", "empty": "text", "small": "int", "large": "bigint", "truth": "boolean",
    "number": "float8", "bytes": "bytea", "level": "smallint", "id": "uuid", "time": "timestamptz", "texts": "text[]",
    "bits": "bigint[]",
}  # fmt: skip


class One(NamedTuple):
    """A row of one column."""

    value: object


def one(values):
    return One(*values)


@pytest.fixture
def database(migrated):
    found = Database(migrated.conninfo, pool_sizes=SINGLE)
    yield found
    found.close()


@pytest.fixture
def connection(database):
    with database.connection(roles.CONTROL, Deadline()) as found:
        yield found


def test_values_arrive_as_through_a_cursor(connection):
    query = "SELECT " + ", ".join(f"%({name})s::{kind}" for name, kind in TYPES.items())

    by_cursor = connection.execute(query, VALUES).fetchall()

    assert connection.read(query, VALUES, tuple) == by_cursor
    assert by_cursor == [tuple(VALUES.values())]


def test_a_parameter_may_be_named_twice_and_a_percent_sign_is_doubled(connection):
    query = "SELECT %(b)s::text || '%%' || %(a)s::text || %(b)s::text"

    assert connection.read(query, {"a": "x", "b": "y", "not named": 1}, one) == [One("y%xy")]


def test_a_query_is_prepared_once_for_each_type_of_its_values(connection):
    query = "SELECT %(number)s + 1"
    for number in (1, 2**40, 2, 2**40, -1):
        assert connection.read(query, {"number": number}, one) == [One(number + 1)]

    prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'single_%'").fetchone()
    assert prepared == (2,)


def test_a_write_counts_the_rows_that_it_wrote(migrated):
    with migrated.as_admin() as admin:
        admin.execute("CREATE TEMPORARY TABLE written (number integer)")
        statements = PreparedStatements(admin)
        query = "INSERT INTO written SELECT generate_series(1, %(count)s)"

        assert [statements.count(query, {"count": count}) for count in (0, 1, 3)] == [0, 1, 3]


def test_no_row_is_an_empty_list(connection):
    assert connection.read("SELECT 1 WHERE false", {}, one) == []


def test_reads_go_on_after_a_transaction_was_rolled_back(connection):
    query = "SELECT %(value)s::text"
    connection.read(query, {"value": "before"}, one)
    connection.execute("SELECT 1")
    with contextlib.suppress(psycopg.Error), connection.pipeline():
        connection.execute("BEGIN")
        connection.execute("SELECT 1 / 0")
    connection.rollback()

    assert connection.read(query, {"value": "after"}, one) == [One("after")]


def test_a_failed_statement_raises_what_a_cursor_raises_and_the_next_one_runs(connection):
    query = "SELECT 1 / %(number)s"
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.read(query, {"number": 0}, one)
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.read("SELECT * FROM nowhere", {}, one)

    assert connection.read(query, {"number": 1}, one) == [One(1)]


def read_after(database, deadline, before):
    """Sleep for long, after *before* was called with the connection."""
    with database.connection(roles.CONTROL, deadline) as connection:
        connection.read("SELECT 1", {}, one)
        before(connection)
        connection.read("SELECT pg_sleep(20)", {}, one)


def test_a_read_is_canceled_when_its_deadline_expires(database):
    deadline = Deadline()

    with pytest.raises(DeadlineExceeded):
        read_after(database, deadline, lambda connection: threading.Timer(0.2, deadline.expire).start())


@pytest.mark.parametrize("seconds", [0.0, 0.2], ids=["before", "during"])
def test_a_connection_that_breaks_before_or_during_a_read_is_replaced(database, migrated, seconds):
    def kill(process):
        with migrated.as_admin() as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [process])

    def before(connection):
        killing = threading.Timer(seconds, kill, [connection.info.backend_pid])
        killing.start()
        if not seconds:
            killing.join()

    with pytest.raises(Unavailable):
        read_after(database, Deadline(), before)

    with database.connection(roles.CONTROL, Deadline()) as connection:
        assert connection.read("SELECT 1", {}, one) == [One(1)]


@pytest.fixture
def numbers(migrated):
    """A connection that has a table of numbers."""
    with RoleConnection.connect(migrated.admin, autocommit=True) as admin:
        admin.execute("CREATE TEMPORARY TABLE written (number integer PRIMARY KEY)")
        yield admin


def written(connection):
    return [number for (number,) in connection.execute("SELECT number FROM written ORDER BY number").fetchall()]


INSERT = "INSERT INTO written VALUES (%(number)s) RETURNING number"


def test_a_transaction_returns_the_rows_of_its_first_statement(numbers):
    rows = numbers.write_all([(INSERT, {"number": 1}), (INSERT, {"number": 2})], tuple)

    assert (rows, written(numbers)) == ([(1,)], [1, 2])


@pytest.mark.parametrize("given", [(1, 1), (1, 2, 1), (None, 1)], ids=str)
def test_of_a_transaction_that_fails_nothing_is_written_and_the_next_one_runs(numbers, given):
    with pytest.raises(psycopg.errors.IntegrityError):
        numbers.write_all([(INSERT, {"number": number}) for number in given], tuple)
    assert written(numbers) == []

    numbers.write_all([(INSERT, {"number": 3})], tuple)
    assert written(numbers) == [3]


def test_transactions_that_fail_prepare_their_statements_once(numbers):
    """Callers who cancel their writes would otherwise fill the memory of the database."""
    for number in (1, 1, 1, 2):
        with contextlib.suppress(psycopg.errors.UniqueViolation):
            numbers.write_all([(INSERT, {"number": number}), (INSERT, {"number": 1})], tuple)
        numbers.rollback()  # as at the end of each call

    prepared = numbers.execute("SELECT statement FROM pg_prepared_statements ORDER BY 1", prepare=False).fetchall()
    assert prepared == [("BEGIN",), ("COMMIT",), (INSERT.replace("%(number)s", "$1"),), ("ROLLBACK",)]


def test_a_transaction_may_be_larger_than_all_buffers_between(connection):
    large = "x" * (8 << 20)

    rows = connection.write_all([("SELECT %(text)s::text", {"text": large})] * 3, tuple)

    assert rows == [(large,)]


def test_a_transaction_is_canceled_when_its_deadline_expires(database):
    deadline = Deadline()
    threading.Timer(0.5, deadline.expire).start()

    with pytest.raises(DeadlineExceeded):
        sleep_in_a_transaction(database, deadline)


def test_a_transaction_whose_connection_breaks_is_unavailable(database, migrated):
    def terminate(connection):
        with migrated.as_admin() as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))

    with pytest.raises(Unavailable):
        sleep_in_a_transaction(database, Deadline(), lambda connection: threading.Timer(0.5, terminate, [connection]))


def sleep_in_a_transaction(database, deadline, meanwhile=lambda _: threading.Timer(0, int)):
    with database.connection(roles.CONTROL, deadline) as connection:
        meanwhile(connection).start()
        connection.write_all([("SELECT 1", {}), ("SELECT pg_sleep(20)", {}), ("SELECT 2", {})], tuple)
