"""A backup of a cluster is as of one moment, and can be restored: into a cluster, and into plain Postgres."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from muniment.cli.failures import Failure
from muniment_server.admin import dumps
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.history import revisions_of
from muniment_server.admin.host_keys import list_host_keys, revoke_host_key
from muniment_server.admin.inspection import broken_index, broken_storage, erasing
from muniment_server.admin.journal import journal_of, to_bytes
from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.engines.citus import Citus
from muniment_server.engines.citus import cluster as citus
from muniment_server.engines.citus import grants as cluster_grants
from muniment_server.engines.citus import pausing as paused_writes
from muniment_server.monitor import grants
from muniment_server.postgres import migrate, roles
from muniment_server.runtime import restoring
from tests.operations.citus.clones import ClusterPostgres, running_cluster
from tests.operations.citus.cluster import BINARIES, missing
from tests.support.answers import refusal
from tests.support.backups import load
from tests.support.commands import COMMAND, environment_in, run, wait_until
from tests.support.databases import Database, cloned, running_postgres
from tests.support.services import Caller, Service, serving

pytestmark = [
    pytest.mark.proof,
    pytest.mark.deep,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

PUBLIC, CONFIDENTIAL = Classification.PUBLIC, Classification.CONFIDENTIAL
_DUMPS = "SELECT FROM pg_stat_activity WHERE application_name = 'pg_dump'"
_WRITES = (
    "INSERT INTO muniment_control.audit (tenant, event_id, level, method, outcome)"
    " SELECT tenant, gen_random_uuid(), 1, 'test', 'OK' FROM vault.tenant WHERE name LIKE 'counting %'",
    "UPDATE vault.tenant SET max_items = max_items + 1 WHERE name LIKE 'counting %'",
)
"""A transaction that writes to two tables, on all nodes."""
_SHARDS = """
SELECT shard_name, nodeport
  FROM vault.tenant
       JOIN citus_shards ON citus_shards.shardid = get_shard_id_for_distribution_column('vault.tenant', tenant)
"""
"""The shards that have a tenant."""
_SHARED = "SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND granted"


@pytest.fixture(scope="module")
def postgres() -> Iterator[ClusterPostgres]:
    """A cluster, where only `muniment backup` ends what a lost connection has left prepared."""
    with running_cluster(**{"citus.recover_2pc_interval": "-1"}) as made:
        yield made


@pytest.fixture(scope="module")
def plain() -> Iterator[EmbeddedPostgres]:
    """A plain Postgres of the same version."""
    with running_postgres(BINARIES) as server:
        yield server


@contextmanager
def started(database: Database) -> Iterator[tuple[Caller, Service]]:
    """A server with two versions of a public memory and one of a confidential one; and the public session."""
    with serving(database) as service:
        session = service.session(PUBLIC)
        for content in ("first", "second"):
            session.save_memory(key="plan", content=content)
        service.session(CONFIDENTIAL).save_memory(key="plan", content="hidden")
        yield session, service


def backed_up(database: Database, folder: Path) -> Path:
    file = folder / f"{database.name}.dump"
    with file.open("wb") as target:
        dumps.dump(database.admin, target)
    return file


def one(connection: psycopg.Connection[Any], query: str, parameters: Sequence[object] = ()) -> Any:
    """The first value of the first row."""
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]


def versions(database: Database) -> list[str]:
    """The versions of `plan`, at all levels."""
    with connect_operator(database.admin) as operator:
        found = revisions_of(operator, tenant="acme", agent_id="alice", kind=1, name="plan")  # type: ignore[arg-type]
    return [revision.content for revision in found]


def differences(database: Database) -> list[str]:
    """How the grants differ from the matrix, on all nodes."""
    with database.connect(roles.CONTROL) as connection:
        on_cluster = citus.is_cluster(connection)
        return cluster_grants.differences(connection) if on_cluster else grants.differences(connection)


def check_restored(database: Database, session: Caller) -> None:
    """All versions are there, *session* is closed, the grants are right, and the database can be served."""
    assert versions(database) == ["first", "second", "hidden"]
    assert differences(database) == []
    with serving(database) as restored:
        old = Caller(restored.channel, session.token)
        assert refusal(old.get_memory, key="plan") == "UNAUTHENTICATED CREDENTIAL_INVALID"
        new = restored.session(PUBLIC)
        assert new.get_memory(key="plan").memory.content == "second"
        assert new.save_memory(key="plan", content="third").memory.content == "third"


def restore(folder: Path, file: Path, database: Database, *options: str) -> str:
    """What `muniment restore` says."""
    done = run(folder, "restore", str(file), "--database-url", database.admin, *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_backup_of_a_cluster_is_restored_into_a_cluster_and_into_plain_postgres(
    postgres: ClusterPostgres, plain: EmbeddedPostgres, database: Database, tmp_path: Path
) -> None:
    with started(database) as (session, service):
        tenant = newest_tenant(service)
        done = run(tmp_path, "backup", "muniment.dump", "--database-url", database.admin)
        assert done.returncode == 0, done.stderr
    file = tmp_path / "muniment.dump"
    with cloned(postgres) as restored:
        output = restore(tmp_path, file, restored)
        assert "2 open sessions were closed" in output
        assert "Unless they need none, run `muniment migrate --rotate`" in output
        with restored.as_admin() as admin:
            assert citus.undistributed(admin) == {}
            assert admin.execute("SELECT nextval('vault.tenant_tenant_seq')").fetchone() == (tenant + 1,)
        check_restored(restored, session)
    with cloned(plain) as restored:
        output = restore(tmp_path, file, restored)
        assert "2 open sessions were closed" in output
        assert "--rotate" not in output
        check_restored(restored, session)


def newest_tenant(service: Service) -> int:
    """The number of the newest tenant."""
    with service.database.as_owner() as owner:
        return int(one(owner, "SELECT max(tenant) FROM vault.tenant"))


def test_a_backup_of_plain_postgres_is_restored_into_a_cluster(
    postgres: ClusterPostgres, plain: EmbeddedPostgres, tmp_path: Path
) -> None:
    with cloned(plain) as database, started(database) as (session, _):
        file = backed_up(database, tmp_path)
    with cloned(postgres) as restored:
        assert "2 open sessions were closed" in restore(tmp_path, file, restored)
        with restored.as_admin() as admin:
            assert citus.undistributed(admin) == {}
        check_restored(restored, session)


def old_backup(plain: EmbeddedPostgres, folder: Path, version: int) -> Path:
    """A backup of the tenant `old`, by the version of Muniment that had that version of the schema."""
    with cloned(plain) as database:
        with database.as_admin() as admin:
            for schema in dumps._SCHEMAS:
                admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
        migrate.migrate(database.admin, until=version)
        with database.as_owner() as owner:
            owner.execute("INSERT INTO vault.tenant (name) VALUES ('old')")
        return backed_up(database, folder)


def test_a_backup_by_an_older_version_is_restored_into_a_cluster(
    postgres: ClusterPostgres, plain: EmbeddedPostgres, tmp_path: Path
) -> None:
    """Its rows are loaded into the schema of that version, which is then migrated."""
    file = old_backup(plain, tmp_path, dumps._OLDEST_ROWS)
    with cloned(postgres) as restored:
        restore(tmp_path, file, restored)

        with connect_operator(restored.admin) as operator:
            assert operator.find_tenant("old")
        assert differences(restored) == []


def test_a_backup_by_a_version_that_knew_no_clusters_is_refused_before_anything_is_done(
    plain: EmbeddedPostgres, database: Database, tmp_path: Path
) -> None:
    file = old_backup(plain, tmp_path, dumps._OLDEST_ROWS - 1)
    with pytest.raises(Failure, match="before Muniment supported"):
        load(database.admin, file)

    with database.as_owner() as owner:
        assert restoring.problems(owner) == []


def test_a_backup_of_a_cluster_is_verified(database: Database, tmp_path: Path) -> None:
    with started(database):
        file = backed_up(database, tmp_path)

    done = run(tmp_path, "verify", str(file))

    assert (done.returncode, done.stderr) == (0, "")
    assert "agents in the backup: 1; tenants: 1" in done.stdout
    assert "the ledgers are complete" in done.stdout


def id_of(database: Database, name: str) -> str:
    """The id of a public memory."""
    with database.as_owner() as owner:
        found = owner.execute(
            "SELECT item_id FROM muniment_public.item WHERE kind = 1 AND name = %s", [name]
        ).fetchall()
    return str(found[0][0])


def test_a_journal_is_repeated_on_a_cluster(postgres: ClusterPostgres, database: Database, tmp_path: Path) -> None:
    """One agent is deleted; of another, an item and one revision of another item are erased. A key is revoked."""
    with started(database) as (session, service):
        session.save_memory(key="gone", content="gone")
        host = service.host()
        service.session(PUBLIC, agent_id="bob").save_memory(key="of bob", content="of bob")
        with connect_operator(database.admin) as operator:
            key = list_host_keys(operator)[0].host_key_id
        file = backed_up(database, tmp_path)
        host.erase_items(agent_id="alice", kind=1, name="gone")
        item_id = id_of(database, "plan")
        host.erase_items(agent_id="alice", kind=1, item_id=item_id, revision=1)
        host.delete_agent(agent_id="bob")
        with connect_operator(database.admin) as operator:
            revoke_host_key(operator, UUID(str(key)))
            (tmp_path / "muniment.journal").write_bytes(to_bytes(journal_of(operator.connection)))
    with cloned(postgres) as restored:
        output = restore(tmp_path, file, restored, "--journal", str(tmp_path / "muniment.journal"))

        assert "4 of 4 entries of the journal were repeated." in output
        assert versions(restored) == ["second", "hidden"]
        assert differences(restored) == []
        with connect_operator(restored.admin) as operator:
            assert revisions_of(operator, tenant="acme", agent_id="alice", kind=1, name="gone") == []  # type: ignore[arg-type]
            assert erasing(operator)[0] == 1
            assert [each.revoke_time is not None for each in list_host_keys(operator)] == [True]
            assert not any(broken_storage(operator).values())
            assert not any(broken_index(operator).values())
            assert len(journal_of(operator.connection).entries) == 4


def test_an_interrupted_restore_stays_marked(
    postgres: ClusterPostgres, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers and operators refuse the database."""
    with started(database):
        file = backed_up(database, tmp_path)
    with cloned(postgres) as restored, monkeypatch.context() as interrupted:
        interrupted.setattr(dumps, "_restore", lambda *_: sys.exit(143))
        assert run(tmp_path, "restore", str(file), "--database-url", restored.admin).returncode == 143

        refused = run(tmp_path, "host-key", "list", "--database-url", restored.admin)

        assert (refused.returncode, refused.stdout) == (1, "")
        assert "a restore into this database has not ended" in refused.stderr
        with restored.connect(roles.CONTROL) as connection:
            assert restoring.problems(connection) != []


@pytest.fixture
def counting(database: Database) -> Database:
    """A database with tenants on both workers, for `_WRITES`."""
    with database.as_owner() as owner:
        for number in range(6):
            owner.execute("INSERT INTO vault.tenant (name, max_items) VALUES (%s, 0)", [f"counting {number}"])
    with database.as_admin() as admin:
        assert one(admin, f"SELECT count(DISTINCT nodeport) FROM ({_SHARDS}) AS used") == 2
    return database


def write(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        for statement in _WRITES:
            connection.execute(statement.encode())


def counts(file: Path) -> set[int]:
    """How many of the writes a backup has, in each table for each tenant."""
    command = [str(BINARIES / "pg_restore"), "--data-only", "--file=-", str(file)]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    tenants = [row["tenant"] for row in rows(text, "vault.tenant") if row["name"].startswith("counting")]
    logged = Counter(row["tenant"] for row in rows(text, "muniment_control.audit") if row["method"] == "test")
    counted = {int(row["max_items"]) for row in rows(text, "vault.tenant") if row["tenant"] in tenants}
    return counted | {logged[tenant] for tenant in tenants}


def rows(text: str, table: str) -> list[dict[str, str]]:
    """The rows of *table* in a backup's *text*, by column."""
    found = re.search(rf"^COPY {re.escape(table)} \((.*)\) FROM stdin;\n((?:.*\n)*?)\\\.$", text, re.MULTILINE)
    assert found is not None
    columns = found[1].split(", ")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in found[2].splitlines()]


def backups_between_writes(database: Database, folder: Path) -> None:
    """Back up three times while others write. Each backup has all writes from before it, and none by half."""
    written, stop = [0], threading.Event()

    def write_always() -> None:
        with database.as_owner() as owner:
            while not stop.is_set():
                write(owner)
                written[0] += 1

    writer = threading.Thread(target=write_always)
    writer.start()
    try:
        for number in range(3):
            before = written[0]
            wait_until(lambda: written[0] >= before + 3, "nothing is written")  # noqa: B023
            acknowledged = written[0]
            file = folder / f"{number}.dump"
            with file.open("wb") as target:
                dumps.dump(database.admin, target)
            (found,) = counts(file)
            assert found >= acknowledged
    finally:
        stop.set()
        writer.join()


def test_a_backup_has_all_of_each_write_or_nothing(counting: Database, tmp_path: Path) -> None:
    backups_between_writes(counting, tmp_path)


def test_if_writes_do_not_pause_that_test_fails(
    counting: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Citus, "paused_writes", lambda *_: nullcontext())
    with pytest.raises((AssertionError, ValueError)):
        backups_between_writes(counting, tmp_path)


def test_writes_wait_for_a_backup_on_each_node_and_reads_do_not(postgres: ClusterPostgres, database: Database) -> None:
    with started(database) as (session, _):
        with paused_writes.paused_writes(database.admin):
            assert refusal(session.save_memory, key="plan", content="late") == "UNAVAILABLE UNAVAILABLE"
            assert session.get_memory(key="plan").memory.content == "second"
            for port in (postgres.cluster.coordinator, *postgres.cluster.workers):
                with postgres.cluster.admin(port, database.name) as admin:
                    admin.execute("SET lock_timeout = '200ms'")
                    assert admin.execute("SELECT count(*) FROM muniment_public.item WHERE kind = 1").fetchone() == (1,)
                    with pytest.raises(psycopg.errors.LockNotAvailable):
                        admin.execute("UPDATE muniment_public.item SET tags = tags")
            with paused_writes.paused_writes(database.admin):
                pass

        assert session.save_memory(key="plan", content="third").memory.content == "third"


def test_a_backup_waits_for_the_write_that_runs_and_lets_it_end(
    counting: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it goes on with a table that is locked by then: the lock is given up before Postgres ends the write.

    Whoever waits looks for a deadlock once: here the backup does before there is one, so the write would be ended.
    """
    monkeypatch.setitem(paused_writes._SETTINGS, "deadlock_timeout", "1ms")
    with counting.as_owner() as owner, counting.as_owner() as observer:
        owner.execute("BEGIN")
        owner.execute("UPDATE vault.tenant SET max_items = 7 WHERE name LIKE 'counting %'")
        paused = threading.Event()

        def pause() -> None:
            with paused_writes.paused_writes(counting.admin):
                paused.set()

        thread = threading.Thread(target=pause)
        thread.start()
        wait_until(lambda: one(observer, _SHARED) > 30, "nothing is locked")
        owner.execute("DELETE FROM muniment_auditor.seal WHERE tenant = 1")
        assert not paused.is_set()
        owner.execute("COMMIT")
        thread.join(30)

    assert paused.is_set()


def test_a_backup_has_what_was_committed_but_not_yet_on_a_node(postgres: ClusterPostgres, counting: Database) -> None:
    """As if the connection to the node was lost between the two phases of a commit."""
    port = postgres.cluster.workers[0]
    with counting.as_admin() as admin:
        shard = one(admin, f"{_SHARDS} WHERE nodeport = %s", [port])
        group = one(admin, "SELECT groupid FROM pg_dist_node WHERE nodeport = %s", [port])
    gid = "citus_0_999999_999999_1"
    with postgres.cluster.admin(port, counting.name) as node:
        node.execute("SET citus.enable_manual_changes_to_shards = on")
        node.execute("BEGIN")
        node.execute(f"UPDATE {shard} SET max_items = 41".encode())
        node.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    with counting.as_admin() as admin:
        admin.execute("INSERT INTO pg_dist_transaction (groupid, gid) VALUES (%s, %s)", [group, gid])
    with paused_writes.paused_writes(counting.admin), counting.as_owner() as owner:
        assert one(owner, "SELECT count(*) FROM vault.tenant WHERE max_items = 41") > 0


def test_a_backup_fails_if_writes_could_go_on_at_a_node(postgres: ClusterPostgres, database: Database) -> None:
    paused = paused_writes.paused_writes(database.admin)
    paused.__enter__()
    with postgres.cluster.admin(postgres.cluster.workers[1], database.name) as node:
        lost = (
            "SELECT pg_terminate_backend(pid) FROM (SELECT DISTINCT pid FROM pg_locks WHERE mode = 'ShareLock') AS held"
        )
        assert node.execute(lost).fetchall() == [(True,)]
    with pytest.raises(psycopg.Error):
        paused.__exit__(None, None, None)


def test_if_the_lock_is_not_taken_again_that_test_fails(
    postgres: ClusterPostgres, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = iter([citus.lock_against_writes])
    monkeypatch.setattr(citus, "lock_against_writes", lambda connection: next(once, lambda _: None)(connection))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_backup_fails_if_writes_could_go_on_at_a_node(postgres, database)


def test_if_nothing_waits_for_what_is_prepared_that_test_fails(
    postgres: ClusterPostgres, counting: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(paused_writes, "_await_writes", lambda _: None)
        with pytest.raises(AssertionError):
            test_a_backup_has_what_was_committed_but_not_yet_on_a_node(postgres, counting)

    with paused_writes.paused_writes(counting.admin):  # or the database could not be dropped
        pass


def test_a_worker_is_not_backed_up(postgres: ClusterPostgres, database: Database, tmp_path: Path) -> None:
    worker = database.admin.replace(str(postgres.cluster.coordinator), str(postgres.cluster.workers[0]))

    refused = run(tmp_path, "backup", "muniment.dump", "--database-url", worker)

    assert refused.returncode == 1
    assert "name the database of the coordinator" in refused.stderr
    assert list(tmp_path.glob("*.dump*")) == []


def test_if_a_backup_is_killed_the_writes_go_on(postgres: ClusterPostgres, database: Database, tmp_path: Path) -> None:
    """Here it waits because nothing reads the pipe that it writes to."""
    with started(database) as (session, _), database.as_admin() as admin:
        command = [*COMMAND, "backup", "-", "--database-url", database.admin]
        backup = subprocess.Popen(command, env=environment_in(tmp_path), stdout=subprocess.PIPE)
        wait_until(lambda: one(admin, _SHARED) > 40, "nothing is locked")
        wait_until(lambda: admin.execute(_DUMPS).fetchall(), "there is no pg_dump")
        assert refusal(session.save_memory, key="plan", content="late") == "UNAVAILABLE UNAVAILABLE"

        backup.send_signal(signal.SIGKILL)

        for port in (postgres.cluster.coordinator, *postgres.cluster.workers):
            with postgres.cluster.admin(port, database.name) as node:
                wait_until(lambda: one(node, _SHARED) == 0, "the lock stays")
        assert session.save_memory(key="plan", content="third").memory.content == "third"
        assert backup.stdout is not None
        backup.stdout.close()
        backup.wait()
        wait_until(lambda: not admin.execute(_DUMPS).fetchall(), "pg_dump goes on")
