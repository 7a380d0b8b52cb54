"""Starting, serving and stopping."""

from __future__ import annotations

import os
import threading

import psycopg
import pytest

from muniment_server.embedded_postgres import EmbeddedPostgresError, conninfo_of_running, find_bindir
from tests.support.embedded import SYSTEM_15, query

system_15 = pytest.param(
    SYSTEM_15,
    id="system-15",
    marks=pytest.mark.skipif(not SYSTEM_15.exists(), reason=f"no system Postgres 15 in {SYSTEM_15}"),
)
every_postgres = pytest.mark.parametrize("bindir", [pytest.param(None, id="found"), system_15])


@every_postgres
def test_a_first_start_makes_a_database_that_outlives_a_stop(embedded, bindir):
    with embedded(bindir=bindir) as first:
        query(first.conninfo(user="postgres"), "CREATE TABLE kept AS SELECT 'vanilla' AS flavor")

    with embedded(bindir=bindir) as again:
        assert query(again.conninfo(user="postgres"), "SELECT flavor FROM kept") == "vanilla"


@every_postgres
def test_text_beyond_ascii_is_understood(embedded, bindir):
    """Lower case and encoding work, whatever the environment's locale."""
    with embedded(bindir=bindir) as server:
        assert query(server.conninfo(user="postgres"), "SELECT lower('É') = 'é'") is True
        assert query(server.conninfo(user="postgres"), "SHOW server_encoding") == "UTF8"


@every_postgres
def test_the_roles_named_are_admitted_without_a_password(embedded, bindir):
    with embedded(bindir=bindir) as server:
        query(server.conninfo(user="postgres"), "CREATE ROLE muniment_public LOGIN")
        assert query(server.conninfo(user="muniment_public"), "SELECT current_user") == "muniment_public"


def test_roles_may_grow_from_one_start_to_the_next(embedded):
    """Postgres 15 lists every role; the list follows the code."""
    if not SYSTEM_15.exists():
        pytest.skip(f"no system Postgres 15 in {SYSTEM_15}")
    with embedded(bindir=SYSTEM_15, roles=["old"]) as server:
        query(server.conninfo(user="postgres"), "CREATE ROLE new LOGIN")
        with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
            query(server.conninfo(user="new"), "SELECT 1")

    with embedded(bindir=SYSTEM_15, roles=["old", "new"]) as server:
        assert query(server.conninfo(user="new"), "SELECT current_user") == "new"


def test_it_is_durable_by_default(embedded):
    with embedded(durable=True) as server:
        conninfo = server.conninfo(user="postgres")
        shown = [query(conninfo, f"SHOW {name}") for name in ("fsync", "full_page_writes", "synchronous_commit")]

    assert shown == ["on", "on", "on"]


def test_a_setting_is_passed_on(embedded):
    with embedded(settings={"max_connections": "17"}) as server:
        assert query(server.conninfo(user="postgres"), "SHOW max_connections") == "17"


@pytest.mark.parametrize("name", ["listen_addresses", "Log-Statement", "log_min_messages", "ident_file"])
def test_a_setting_that_guards_something_cannot_be_chosen(embedded, name):
    with pytest.raises(ValueError, match=name):
        embedded(settings={name: "all"})


def test_running_and_pid_follow_the_child(embedded):
    server = embedded()
    before = (server.running, server.pid)
    server.start()
    during = (server.running, server.pid)
    server.stop()

    assert before == (False, None)
    assert during[0] is True
    assert not os.path.exists(f"/proc/{during[1]}")
    assert (server.running, server.pid) == (False, None)


def test_stopping_twice_is_fine_and_starting_twice_is_not(embedded):
    with embedded() as server, pytest.raises(EmbeddedPostgresError, match="already running"):
        server.start()
    server.stop()


def test_a_refused_second_start_leaves_the_first_alone(embedded):
    with embedded() as server:
        with pytest.raises(EmbeddedPostgresError):
            server.start()
        assert query(server.conninfo(user="postgres"), "SELECT 1") == 1


def test_a_thread_may_not_start_it(embedded):
    """Postgres would stop when the thread ends."""
    refusals: list[EmbeddedPostgresError] = []

    def attempt() -> None:
        try:
            embedded().start()
        except EmbeddedPostgresError as error:
            refusals.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()

    assert "main thread" in str(refusals[0])


def test_a_caller_who_asks_too_early_gets_an_error(embedded):
    with pytest.raises(EmbeddedPostgresError, match="call start"):
        embedded().conninfo(user="postgres")


def test_the_environment_of_libpq_does_not_divert_a_connection(embedded, monkeypatch):
    monkeypatch.setenv("PGPORT", "6543")
    with embedded() as server:
        assert query(server.conninfo(user="postgres"), "SELECT 1") == 1


def test_a_command_beside_a_running_server_finds_it(embedded, directory):
    assert conninfo_of_running(directory, user="postgres") is None

    with embedded() as server:
        beside = conninfo_of_running(directory, user="postgres")
        assert beside is not None
        assert beside == server.conninfo(user="postgres")
        assert query(beside, "SELECT 1") == 1

    assert conninfo_of_running(directory, user="postgres") is None


def test_a_failed_start_says_what_postgres_said_and_gives_the_directory_up(embedded):
    with pytest.raises(EmbeddedPostgresError, match='unrecognized configuration parameter "no_such"'):
        embedded(settings={"no_such": "1"}).start()

    with embedded(bindir=find_bindir()) as server:
        assert server.running
