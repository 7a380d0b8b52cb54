"""A database with data is distributed in place. The tests are in the order of what happens to it."""

from __future__ import annotations

import hashlib
import signal
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import grpc
import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.engines.citus import cluster as citus
from muniment_server.engines.citus import grants as cluster_grants
from muniment_server.engines.citus.distributing import distribution
from muniment_server.postgres import migrate as migrations
from muniment_server.postgres import roles
from tests.operations.citus.cluster import Cluster, folder_of_nodes, missing, running
from tests.operations.citus.served import DATABASE, SERVABLE, new_host_key
from tests.proof.faults.load import channel_to
from tests.support.commands import COMMAND, WORDS_ALONE, Done, Server, environment_in, run, run_process, wait_until
from tests.support.external_postgres import admin_url, migrate
from tests.support.services import Caller

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

_TENANTS = ("acme", "globex", "initech")
_LATE = "late"
"""A second database of the coordinator, without data, for what happens to a cluster that is not complete."""
_MOVES = "SELECT query FROM pg_stat_activity WHERE usename = %s AND xact_start IS NOT NULL"
_LIMITS = ("statement_timeout", "idle_in_transaction_session_timeout")


@dataclass(frozen=True, slots=True)
class Kept:
    """The database before it is distributed: what its tables have, and what open sessions were answered."""

    home: Path
    cluster: Cluster
    rows: Mapping[str, str]
    tokens: Mapping[tuple[str, Classification], str]
    answers: Mapping[tuple[str, Classification], list[bytes]]

    @property
    def passfile(self) -> Path:
        return self.home / "passfile"

    def url(self, database: str = DATABASE) -> str:
        return self.cluster.url(self.cluster.coordinator, database)

    def distribute(self, *options: str, database: str = DATABASE, port: int = 0, passfile: Path | None = None) -> Done:
        url = self.cluster.url(port or self.cluster.coordinator, database)
        given = ("--passfile", str(passfile or self.passfile), *options)
        return run_process(self.home, "distribute", *given, MUNIMENT_DATABASE_URL=admin_url(url))

    def admin(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        return self.cluster.admin(self.cluster.coordinator, database)

    def is_distributed(self) -> bool:
        with self.admin() as admin:
            return admin.execute("SELECT FROM pg_dist_partition").fetchone() is not None


def _hashes(connection: psycopg.Connection[Any], tables: list[str]) -> dict[str, str]:
    """A hash of all rows of each table, with their columns as text.

    Without the grants that a migration records for older servers: a cluster has others.
    """
    found = {}
    for table in tables:
        columns = connection.execute(
            "SELECT string_agg(format('%%I::text', attname), ', ' ORDER BY attnum) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'grants'",
            [table],
        ).fetchone()
        assert columns is not None
        rows = connection.execute(f"SELECT {columns[0]} FROM {table}".encode()).fetchall()
        found[table] = hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest() + f" {len(rows)}"
    return found


@contextmanager
def _served(home: Path, cluster: Cluster) -> Iterator[grpc.Channel]:
    url = cluster.url(cluster.coordinator, DATABASE)
    server = Server(
        home,
        *("--database-url", url, "--passfile", str(home / "passfile"), "--listen", "127.0.0.1:0", "--workers", "1"),
        environment=environment_in(home, PYTHONPATH=str(WORDS_ALONE)),
    )
    try:
        with channel_to(server.address) as channel:
            yield channel
    finally:
        server.end()


def _write(host: Caller, tenant: str, level: Classification) -> str:
    """An open session of an agent that has stored some of each kind at *level*; return its token."""
    opened = host.open_session(agent_id="alice", taint=int(level))
    session = Caller(host.channel, opened.token, opened.session.session_id, opened.session.conversation_id)
    for number in range(5):
        session.save_memory(
            key=f"plan {number}", content=f"{tenant} repairs the bridges of {level.name} in year {number}"
        )
    session.save_memory(key="plan 0", content=f"{tenant} has repaired them")
    session.delete_memory(key="plan 1")
    session.store_passage(content=f"The bridge of {tenant} at {level.name} was repaired.")
    return str(opened.token)


def _answers(channel: grpc.Channel, token: str) -> list[bytes]:
    """What the session is answered, byte for byte."""
    session = Caller(channel, token)
    asked = (
        session.observe("ListMemories"),
        session.observe("GetMemory", key="plan 0"),
        session.observe("SearchMemories", query="repairing bridges"),
        session.observe("SearchPassages", query="repairing bridges"),
    )
    assert [outcome.code for outcome in asked] == [grpc.StatusCode.OK] * len(asked), asked
    return [outcome.response for outcome in asked]


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    with folder_of_nodes() as home, running(home, **SERVABLE, autovacuum="off") as cluster:
        for database in (DATABASE, _LATE):
            cluster.create(database)
            done = migrate(home, cluster.url(cluster.coordinator, database), home / "passfile")
            assert done.returncode == 0, done.stderr
        keys = {tenant: new_host_key(home, cluster, tenant, "restricted") for tenant in _TENANTS}
        tokens, answers = {}, {}
        with _served(home, cluster) as channel:
            for key in keys.values():
                Caller(channel, key).create_agent(agent_id="alice")
            for tenant, level in product(_TENANTS, Classification):
                tokens[tenant, level] = _write(Caller(channel, keys[tenant]), tenant, level)
            answers = {place: _answers(channel, token) for place, token in tokens.items()}
        with cluster.admin(cluster.coordinator, DATABASE) as admin:
            tables = [
                table
                for (table,) in admin.execute(
                    "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relowner::regrole = %s::regrole",
                    [roles.OWNER],
                )
            ]
            rows = _hashes(admin, tables)
            admin.execute("ANALYZE")
        cluster.join(DATABASE)
        yield Kept(home, cluster, rows, tokens, answers)


def _is_refused(done: Done, *texts: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    for text in texts:
        assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_does_not_distribute(kept: Kept) -> None:
    refused = kept.distribute(port=kept.cluster.workers[0])

    _is_refused(refused, "this is a worker of a Citus cluster", "name the database of the coordinator")


def test_a_database_that_is_served_is_refused(kept: Kept) -> None:
    with psycopg.connect(kept.url(), user=roles.CONTROL, passfile=str(kept.passfile)):
        _is_refused(kept.distribute(), "the database is being served (muniment_control): stop the servers")


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("version - 1000", "drop the extension, run `muniment migrate` first, and create the extension again"),
        ("version + 1000", "use that of the later release"),
    ],
)
def test_another_version_of_the_schema_is_refused(kept: Kept, version: str, text: str) -> None:
    newest = migrations.newest_version()
    with kept.admin() as admin:
        changed = f"UPDATE vault.migration SET version = {version} WHERE version = %s RETURNING version"
        (other,) = admin.execute(changed.encode(), [newest]).fetchone() or (0,)
        try:
            refused = kept.distribute()
        finally:
            admin.execute("UPDATE vault.migration SET version = %s WHERE version = %s", [newest, other])

    _is_refused(refused, text, f"and this command needs {newest}")


def test_without_a_passfile_it_is_refused(kept: Kept) -> None:
    refused = run_process(kept.home, "distribute", MUNIMENT_DATABASE_URL=admin_url(kept.url()))

    _is_refused(refused, "name the servers' --passfile")


@pytest.mark.parametrize("lines", [slice(1, None), slice(None)], ids=["missing", "another"])
def test_a_passfile_with_other_passwords_is_refused(kept: Kept, tmp_path: Path, lines: slice) -> None:
    first, *others = kept.passfile.read_text().splitlines()
    role = first.split(":")[3]
    other = tmp_path / "passfile"
    other.write_text("\n".join([f"*:*:*:{role}:guessed", *others][lines]) + "\n")
    other.chmod(0o600)

    refused = kept.distribute(passfile=other)

    _is_refused(refused, f"the passfile does not have the password of {role}: name the servers' passfile")


@pytest.mark.parametrize("name", _LIMITS)
def test_a_limit_of_a_node_that_would_end_the_transaction_is_refused(kept: Kept, name: str) -> None:
    port = kept.cluster.workers[1]
    with kept.cluster.admin_of_node_alone(port, DATABASE) as admin:
        admin.execute(f"ALTER DATABASE {DATABASE} SET {name} = '1h'".encode())
        try:
            refused = kept.distribute()
        finally:
            admin.execute(f"ALTER DATABASE {DATABASE} RESET {name}".encode())

    _is_refused(refused, f"{name} is 3600000 ms at 127.0.0.1:{port}, which could end the transaction: set it to 0")


@pytest.mark.parametrize(("name", "setting"), [("synchronous_commit", "off"), ("log_statement", "mod")])
def test_a_node_that_could_lose_the_rows_or_log_passwords_is_refused(kept: Kept, name: str, setting: str) -> None:
    port = kept.cluster.workers[0]
    with kept.cluster.admin_of_node_alone(port, DATABASE) as admin:
        admin.execute(f"ALTER DATABASE {DATABASE} SET {name} = '{setting}'".encode())
        try:
            refused = kept.distribute()
        finally:
            admin.execute(f"ALTER DATABASE {DATABASE} RESET {name}".encode())

    _is_refused(refused, f"{name} is {setting} at 127.0.0.1:{port}")


def test_a_server_that_connects_while_it_waits_for_a_lock_is_noticed(kept: Kept) -> None:
    with kept.admin() as admin, kept.admin() as other, ThreadPoolExecutor(1) as operator:
        last = citus.undistributed_in_order(admin)[-1]
        with admin.transaction():
            admin.execute(f"LOCK TABLE {last} IN ACCESS SHARE MODE".encode())
            refused = operator.submit(kept.distribute)
            waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
            wait_until(lambda: other.execute(waiting, [last]).fetchall(), "it does not wait", seconds=120)
            server = _login(kept, roles.CONTROL, kept.cluster.coordinator)
        with server:
            _is_refused(refused.result(120), "the database is being served (muniment_control): stop the servers")

    assert not kept.is_distributed()


def test_warnings_of_citus_arrive_whatever_the_login_shows(kept: Kept) -> None:
    """They are how Citus says that a node has not confirmed a commit."""
    with kept.admin() as admin:
        admin.execute("ALTER ROLE postgres SET client_min_messages = error")
        try:
            with distribution(admin_url(kept.url()), None) as distributing:
                shown = distributing._connection.execute("SHOW client_min_messages").fetchone()
        finally:
            admin.execute("ALTER ROLE postgres RESET client_min_messages")

    assert shown == ("warning",)


def test_a_dry_run_changes_nothing(kept: Kept) -> None:
    before = _catalogs(kept)

    done = kept.distribute("--dry-run")

    assert done.returncode == 0, done.stderr
    assert f"vault.tenant\t{len(_TENANTS)}" in done.stdout.splitlines()
    assert "Nothing was changed." in done.stderr
    assert not kept.is_distributed()
    assert _catalogs(kept) == before


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_killed_while_it_waits_for_a_lock_it_has_moved_nothing(kept: Kept, place: str) -> None:
    with kept.admin() as admin, kept.admin() as other:
        tables = citus.undistributed_in_order(admin)
        chosen = {"first": 0, "middle": len(tables) // 2, "last": len(tables) - 1}[place]
        before = tables[:chosen]
        with admin.transaction():
            admin.execute(f"LOCK TABLE {tables[chosen]} IN ACCESS SHARE MODE".encode())
            running_command = subprocess.Popen(
                [*COMMAND, "distribute", "--passfile", str(kept.passfile)],
                cwd=kept.home,
                env=environment_in(kept.home, MUNIMENT_DATABASE_URL=admin_url(kept.url())),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
            wait_until(lambda: other.execute(waiting, [tables[chosen]]).fetchall(), "it does not wait", seconds=120)
            for role, port in product(roles.SERVING, kept.cluster.workers):  # before a row arrives there
                with _login(kept, role, port) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("SELECT lo_create(0)")
            for port in kept.cluster.workers:  # nothing moves before all tables are locked
                with kept.cluster.admin(port, DATABASE) as worker:
                    assert worker.execute(_MOVES, [roles.OWNER]).fetchall() == []
            running_command.send_signal(signal.SIGKILL)
            running_command.wait()
            other.execute("SET lock_timeout = '30s'")
            for table in before:  # the locks that it had are free, though it still waits for another
                other.execute(f"SELECT FROM {table} LIMIT 1".encode())
        assert not kept.is_distributed()
        assert _hashes(other, list(kept.rows)) == kept.rows


def test_the_database_is_distributed(kept: Kept) -> None:
    done = kept.distribute()

    assert done.returncode == 0, done.stderr
    assert f"vault.tenant\t{len(_TENANTS)}" in done.stdout.splitlines()
    assert "The database is distributed." in done.stderr
    with kept.admin() as admin:
        assert citus.undistributed(admin) == {}


def test_no_row_has_changed(kept: Kept) -> None:
    with kept.admin() as admin:
        assert _hashes(admin, list(kept.rows)) == kept.rows


def test_the_coordinator_keeps_no_row_of_its_own(kept: Kept) -> None:
    with kept.admin() as admin:
        sizes = [
            admin.execute("SELECT pg_relation_size(%s::regclass)", [table]).fetchone()
            for table in kept.rows
            if table != "vault.migration"
        ]
        samples = admin.execute(
            "SELECT starelid::regclass::text FROM pg_statistic WHERE starelid = ANY(%s::regclass[]::oid[])",
            [list(kept.rows)],
        ).fetchall()
        carriers = admin.execute("SELECT FROM pg_class WHERE relname LIKE 'carrier%'").fetchall()

    assert set(sizes) == {(0,)}
    assert samples == []
    assert carriers == []


def test_the_grants_of_each_node_and_shard_equal_the_matrix(kept: Kept) -> None:
    with _login(kept, roles.CONTROL, kept.cluster.coordinator) as connection:
        assert cluster_grants.differences(connection) == []


def test_a_second_run_finds_nothing_to_do(kept: Kept) -> None:
    for again in (kept.distribute(), migrate(kept.home, kept.url(), kept.passfile)):
        assert (again.returncode, again.stdout) == (0, "")
        assert "Nothing to do" in again.stderr


def test_open_sessions_are_answered_as_before(kept: Kept) -> None:
    with _served(kept.home, kept.cluster) as channel:
        answers = {place: _answers(channel, token) for place, token in kept.tokens.items()}
        Caller(channel, kept.tokens["acme", Classification.PUBLIC]).save_memory(key="new", content="It is writable.")

    assert answers == kept.answers


def test_a_new_tenant_gets_the_next_number(kept: Kept) -> None:
    numbers = "SELECT tenant FROM vault.tenant ORDER BY name = 'hooli', tenant"
    new_host_key(kept.home, kept.cluster, "hooli", "public")

    with kept.admin() as admin:
        *before, number = [number for (number,) in admin.execute(numbers)]
    assert (len(before), number) == (len(_TENANTS), max(before) + 1)


def test_a_cluster_that_is_not_complete_is_refused(kept: Kept) -> None:
    _is_refused(kept.distribute(database=_LATE), "does not have the extension citus: create it on each node")
    for port in (kept.cluster.coordinator, *kept.cluster.workers):
        kept.cluster.extend(port, _LATE)
    _is_refused(kept.distribute(database=_LATE), "call citus_set_coordinator_host, and run this command again")
    with kept.admin(_LATE) as admin:
        admin.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [kept.cluster.coordinator])
    _is_refused(kept.distribute(database=_LATE), "add them with citus_add_node, and run this command again")


def test_a_commit_that_a_node_did_not_confirm_is_no_success(kept: Kept) -> None:
    """The last test of this file: from here on, the nodes have the owner's password of another database."""
    for port in kept.cluster.workers:
        kept.cluster.add(port, _LATE)
    options, url = ("--passfile", str(kept.passfile)), {"MUNIMENT_DATABASE_URL": admin_url(kept.url(_LATE))}

    with patch.object(citus.CommitWarnings, "__bool__", lambda _: True):
        failed = run(kept.home, "distribute", *options, **url)
    again = kept.distribute(database=_LATE)

    _is_refused(failed, "did not confirm the commit", "start the node", "and run the command again")
    assert again.returncode == 0, again.stderr
    assert "The database is distributed." in again.stderr


def _login(kept: Kept, role: str, port: int) -> psycopg.Connection[Any]:
    return psycopg.connect(kept.cluster.url(port, DATABASE), user=role, passfile=str(kept.passfile), autocommit=True)


def _catalogs(kept: Kept) -> list[list[tuple[Any, ...]]]:
    """The roles, their passwords and settings, the schemas and the tables on each node."""
    found = []
    for port in (kept.cluster.coordinator, *kept.cluster.workers):
        with kept.cluster.admin(port, DATABASE) as admin:
            for catalog in ("pg_authid", "pg_dist_authinfo", "pg_db_role_setting", "pg_namespace", "pg_class"):
                rows = admin.execute(f"SELECT catalog::text FROM {catalog} AS catalog".encode())
                found.append(sorted(row for row in rows if "pg_toast" not in row[0]))
    return found
