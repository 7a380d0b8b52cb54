"""A backup can be restored, with every version, and no session of before goes on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

import muniment
from muniment import Classification, Integrity, ItemKind
from muniment.cli.failures import Failure
from muniment_server.admin import development, dumps
from muniment_server.admin import journal as journals
from muniment_server.admin.audit import audit_events
from muniment_server.admin.backup import end_restore
from muniment_server.admin.connection import Operator, connect_operator
from muniment_server.admin.host_keys import (
    create_host_key,
    freeze_host_keys,
    list_host_keys,
    revoke_host_key,
    thaw_host_keys,
)
from muniment_server.admin.inspection import broken_ledgers, erasing
from muniment_server.admin.journal import Journal, from_bytes, journal_of, replay, to_bytes
from muniment_server.domain.classification import Classification as Level
from muniment_server.domain.classification import Label
from muniment_server.domain.ids import HostKeyId, RandomIds
from muniment_server.embedded_postgres import EmbeddedPostgres, conninfo_of_running
from muniment_server.monitor import grants
from muniment_server.postgres import migrate, pool, roles, transaction
from muniment_server.runtime import restoring, schema
from muniment_server.runtime.databases import SUPERUSER, cluster_directory
from tests.proof.races.mutants import spoiled
from tests.support.backups import load
from tests.support.commands import (
    COMMAND,
    SYSTEM_POSTGRES,
    Server,
    environment_in,
    line_of,
    objects,
    run,
    run_process,
    wait_until,
)
from tests.support.databases import Database, cloned
from tests.support.external_postgres import admin_url
from tests.support.releases import REJECTED, TEXT, requested
from tests.support.services import Service
from tests.support.unconfirmed import unconfirmed_commits

Serve = Callable[..., Server]
DEV = ("--dev", "--workers", "1", "--data-dir")
HISTORY = ("history", "--tenant", "development", "--agent", "alice", "plan", "--json")
_BEFORE_CONVERSATION_CEILINGS = 29
"""A version of the schema."""
_SESSION_OF_AN_INTERNAL_AGENT = """
INSERT INTO vault.tenant (tenant, name) OVERRIDING SYSTEM VALUE VALUES (1, 'acme');
INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled, user_profile_enabled,
                         memory_char_limit, user_char_limit, ceiling)
VALUES (1, 1, 'alice', '', 'simple', TRUE, TRUE, 1000, 1000, 2);
INSERT INTO vault.conversation (tenant, agent, conversation_id, taint) VALUES (1, 1, 'chat', 2);
INSERT INTO vault.session (tenant, agent, session_id, conversation_id, token_hash, expire_time, level)
VALUES (1, 1, gen_random_uuid(), 'chat', sha256('token'), 'infinity', 2)
"""
_CEILINGS = """
SELECT ARRAY[agent.ceiling, agent.known_from, conversation.ceiling, session.ceiling]
  FROM vault.session
       JOIN vault.conversation USING (tenant, agent, conversation_id)
       JOIN vault.agent USING (tenant, agent)
"""


@pytest.fixture
def kept(serving: Serve, folder: Path, data_dir: Path) -> tuple[Path, muniment.SessionClient]:
    """A backup of two versions at two levels, taken while the server runs, and a session that was open then."""
    server = serving(*DEV, str(data_dir))
    server.read_to_the_last_line()
    host_key = json.loads((data_dir / development.FILE).read_text())["host_key"]
    host = muniment.connect(server.address, host_key=host_key)
    host.create_agent("alice")
    session = host.open_session("alice", Classification.PUBLIC)
    session.save_memory("plan", "first")
    session.save_memory("plan", "second")
    host.open_session("alice", Classification.CONFIDENTIAL).save_memory("plan", "hidden")
    file = folder / "muniment.dump"
    done = run(folder, "backup", str(file), "--data-dir", str(data_dir))
    assert done.returncode == 0, done.stderr
    return file, session


def test_a_backup_is_restored_with_every_version_and_without_sessions(
    serving: Serve, folder: Path, data_dir: Path, kept: tuple[Path, muniment.SessionClient]
) -> None:
    file, session = kept
    before = objects(run(folder, *HISTORY, "--data-dir", str(data_dir)))
    restored = folder / "restored"

    done = run(folder, "restore", str(file), "--data-dir", str(restored))

    assert done.returncode == 0, done.stderr
    assert "2 open sessions were closed" in done.stderr
    assert objects(run(folder, *HISTORY, "--data-dir", str(restored))) == before
    server = serving(*DEV, str(restored))
    with muniment.connect(server.address, token=session.token) as old, pytest.raises(muniment.Unauthenticated):
        old.get_memory("plan")


@pytest.fixture
def open_release(service: Service) -> Any:
    """A release that one host has asked for."""
    service.session(Level.CONFIDENTIAL).save_memory(key="plan", content=TEXT)
    return requested(service.host(name="asks"), Label.CONFIDENTIAL, Label.PUBLIC)


def test_a_release_that_hosts_have_rejected_since_the_backup_is_not_open_again(
    service: Service, serving: Serve, folder: Path, open_release: Any
) -> None:
    other = service.host(name="other")
    with (folder / "muniment.dump").open("wb") as target:
        dumps.dump(service.database.admin, target)
    other.reject_release(release_id=open_release.release_id)

    done = run(folder, "restore", "muniment.dump", "--data-dir", "restored")

    assert "1 open release was rejected" in done.stderr
    server = serving(*DEV, str(folder / "restored"))
    with muniment.connect(server.address, host_key=other.token) as host:
        with pytest.raises(muniment.ReleaseNotOpen):
            host.approve_release(open_release.release_id, open_release.content_sha256)
        events = [event for event in host.list_audit_events(agent_id="alice") if event.method == "restore"]
    (reason,) = (event.reason for event in events if event.item_id == open_release.item_id)
    assert reason is not None
    assert reason.startswith(f"release {open_release.release_id}, by ")


def test_a_database_that_is_adopted_has_no_open_release(service: Service, folder: Path, open_release: Any) -> None:
    """It may have been restored by other means."""
    (folder / "state").mkdir()
    options = ("--database-url", service.database.admin, "--state-dir", "state")

    (adopted,) = objects(run(folder, "database", "adopt", "--yes", "--json", *options))

    assert adopted["rejected_releases"] == 1
    assert service.host().get_release(release_id=open_release.release_id).release.state == REJECTED


def test_a_conversation_whose_raise_the_backup_lacks_is_not_trusted_again(
    serving: Serve, folder: Path, data_dir: Path, kept: tuple[Path, muniment.SessionClient]
) -> None:
    """Its model has read an untrusted text since. A host that goes on with the id must clear the context."""
    host_key = json.loads((data_dir / development.FILE).read_text())["host_key"]
    file, again = folder / "trusted.dump", ("alice", "chat-42")
    trusted: dict[str, Any] = {"integrity": Integrity.TRUSTED}
    address = str(json.loads((data_dir / development.FILE).read_text())["address"])
    with muniment.connect(address, host_key=host_key) as host:
        opened = host.conversation(*again, **trusted)
        assert run(folder, "backup", str(file), "--data-dir", str(data_dir)).returncode == 0
        host.raise_taint(opened, Classification.PUBLIC, integrity=Integrity.UNTRUSTED, reason="read a page")
    restored = folder / "restored"
    assert run(folder, "restore", str(file), "--data-dir", str(restored)).returncode == 0

    server = serving(*DEV, str(restored))
    with muniment.connect(server.address, host_key=host_key) as host:
        with pytest.raises(muniment.ConversationTainted):
            host.conversation(*again, **trusted)
        host.open_session("alice", Classification.PUBLIC, **trusted)  # others may begin
        session = host.open_session("alice", conversation_id="chat-42")
        assert host.reset_session(session, **trusted).session.integrity is Integrity.TRUSTED


def test_rows_that_a_node_of_a_cluster_did_not_confirm_are_no_restored_backup(
    postgres: EmbeddedPostgres, folder: Path, kept: tuple[Path, muniment.SessionClient]
) -> None:
    file, _ = kept
    with cloned(postgres) as restored:
        not_confirmed = pytest.raises(Failure, match="a node of the cluster did not confirm the commit of the rows")
        with dumps.emptied(restored.admin, file):
            schema.migrate(restored.admin, until=0)
            with unconfirmed_commits(restored.admin), not_confirmed:
                dumps.load(restored.admin, file)
        refused = run(folder, "host-key", "list", "--database-url", restored.admin)

    assert "a restore into this database has not ended" in refused.stderr


def test_what_was_erased_and_revoked_after_a_backup_stays_so_when_it_is_restored(
    folder: Path, data_dir: Path, kept: tuple[Path, muniment.SessionClient]
) -> None:
    file, _ = kept
    data = ("--data-dir", str(data_dir))
    details = json.loads((data_dir / development.FILE).read_text())
    key = objects(run(folder, "host-key", "list", "--json", *data))[0]["host_key_id"]
    with muniment.connect(details["address"], host_key=details["host_key"]) as host:
        host.erase_items("alice", ItemKind.MEMORY, name="plan")
    assert run(folder, "host-key", "revoke", key, "--keep-sessions", *data).returncode == 0
    journal = folder / "muniment.journal"
    assert "Entries in" in run(folder, "journal", str(journal), *data).stderr
    assert "plan" not in journal.read_text()
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    restored = ("--data-dir", str(folder / "restored"))

    done = run(folder, "restore", str(file), "--journal", str(journal), *restored)

    assert done.returncode == 0, done.stderr
    assert "3 of 3 entries of the journal were repeated." in done.stderr
    assert "no version" in run(folder, *HISTORY, *restored).stderr
    assert objects(run(folder, "host-key", "list", "--json", *restored))[0]["revoke_time"] is not None
    assert run(folder, "doctor", *restored).returncode == 0


def test_a_journal_is_replayed_once_and_only_in_its_own_database(
    postgres: EmbeddedPostgres, service: Service, tmp_path: Path
):
    host = service.host()
    host.create_agent(agent_id="bob")
    for session in (service.session(Level.CONFIDENTIAL, agent_id=agent) for agent in ("alice", "bob")):
        for content in ("one", "two", "three"):
            session.save_memory(key="plan", content=content)
    with service.database.as_owner() as owner:
        query = "SELECT item_id FROM muniment_confidential.item ORDER BY create_time LIMIT 1"
        [(item_id,)] = owner.execute(query).fetchall()
    backup = tmp_path / "muniment.dump"
    with backup.open("wb") as target:
        dumps.dump(service.database.admin, target)
    with cloned(postgres) as older:
        load(older.admin, backup)
        host.erase_items(agent_id="alice", kind=1, item_id=str(item_id), revision=2)
        host.delete_agent(agent_id="bob")
        journal = written(service).entries
        with connect_operator(older.admin) as operator, older.as_owner() as owner:
            assert replay(owner, journal) == len(journal) == 2
            assert replay(owner, journal) == 0
            assert erasing(operator)[0] == 1
            assert not any(broken_ledgers(operator).values())
        with older.as_owner() as owner:
            query = "SELECT revision FROM muniment_confidential.revision WHERE agent = %s ORDER BY revision"
            assert owner.execute(query, [journal[0].agent]).fetchall() == [(1,), (3,)]


def test_entries_of_what_the_backup_lacks_are_recorded_so_that_the_next_journal_has_them(
    postgres: EmbeddedPostgres, service: Service, tmp_path: Path
):
    """A tenant that is created then gets a number of its own, since the audit log goes by numbers."""
    with (tmp_path / "muniment.dump").open("wb") as target:
        dumps.dump(service.database.admin, target)
    host = service.host()
    service.session(Level.PUBLIC, agent_id="bob").save_memory(key="plan", content="text")
    host.erase_items(agent_id="bob", kind=1, name="plan")
    host.delete_agent(agent_id="bob")
    with connect_operator(service.database.admin) as operator:
        revoke_host_key(operator, new_key(operator, "later"))
    journal = written(service).entries
    with cloned(postgres) as restored:
        load(restored.admin, tmp_path / "muniment.dump")
        with connect_operator(restored.admin) as operator:
            assert end_restore(operator, journal) == len(journal) == 3
            assert journal_of(operator.connection).entries == journal
            new_key(operator, "another")
            assert [event.method for event in audit_events(operator, tenant="another", limit=9)] == ["host-key create"]


def a_large_journal_is_replayed(
    postgres: EmbeddedPostgres, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The connection has no rest for longer than it may be idle in a transaction, which is 5 s otherwise."""
    monkeypatch.setattr(journals, "_BATCH_ENTRIES", 1500)
    service.session(Level.PUBLIC).save_memory(key="plan", content="text")
    with (tmp_path / "muniment.dump").open("wb") as target:
        dumps.dump(service.database.admin, target)
    service.host().erase_items(agent_id="alice", kind=1, name="plan")
    (erased,) = written(service).entries
    journal = [erased, *(replace(erased, event_id=uuid4(), item_id=uuid4()) for _ in range(4000))]
    monkeypatch.setattr(pool, "SETTINGS", {**pool.SETTINGS, "idle_in_transaction_session_timeout": "20ms"})
    with cloned(postgres) as restored:
        load(restored.admin, tmp_path / "muniment.dump")
        with connect_operator(restored.admin) as operator:
            assert end_restore(operator, journal) == len(journal)
            assert set(journal_of(operator.connection).entries) == set(journal)


def test_a_large_journal_is_replayed(postgres, service, tmp_path, monkeypatch):
    a_large_journal_is_replayed(postgres, service, tmp_path, monkeypatch)


@pytest.mark.proof
def test_with_the_time_limit_for_idle_transactions_that_test_fails(postgres, service, tmp_path, monkeypatch):
    with (
        spoiled(transaction._QUERIES, "lift_idle_timeout", "'0'", "'20ms'"),
        pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout),
    ):
        a_large_journal_is_replayed(postgres, service, tmp_path, monkeypatch)


def written(service: Service) -> Journal:
    """The journal of a database, as a file brings it back."""
    with connect_operator(service.database.admin) as operator:
        return from_bytes(to_bytes(journal_of(operator.connection)))


def test_of_keys_that_were_revoked_frozen_and_thawed_the_last_state_is_repeated(
    postgres: EmbeddedPostgres, service: Service, tmp_path: Path
):
    with connect_operator(service.database.admin) as operator:
        keys = {tenant: new_key(operator, tenant) for tenant in ("frozen", "thawed", "gone")}
        with (tmp_path / "muniment.dump").open("wb") as target:
            dumps.dump(service.database.admin, target)
        freeze_host_keys(operator, "frozen")
        freeze_host_keys(operator, "thawed")
        thaw_host_keys(operator, "thawed")
        revoke_host_key(operator, keys["gone"])
    journal = written(service).entries
    with cloned(postgres) as restored:
        load(restored.admin, tmp_path / "muniment.dump")
        with connect_operator(restored.admin) as operator:
            assert end_restore(operator, journal) == len(journal) == 4
            found = {key.host_key_id: key for key in list_host_keys(operator)}

    assert found[keys["frozen"]].freeze_time == journal[0].time
    assert found[keys["thawed"]].freeze_time is None
    assert found[keys["gone"]].revoke_time == journal[3].time


def test_an_old_journal_does_not_thaw_what_was_frozen_later(service: Service):
    """Its entries are repeated, because the audit log has lost them. The later freeze stays."""
    with connect_operator(service.database.admin) as operator:
        key = new_key(operator, "frozen")
        freeze_host_keys(operator, "frozen")
        thaw_host_keys(operator, "frozen")
        journal = written(service).entries
        freeze_host_keys(operator, "frozen")
        latest = written(service).entries[-1]
        with service.database.as_owner() as owner:
            owner.execute("DELETE FROM muniment_control.audit")
            assert replay(owner, journal) == 2
        found = {each.host_key_id: each for each in list_host_keys(operator)}

    assert found[key].freeze_time == latest.time


def new_key(operator: Operator, tenant: str) -> HostKeyId:
    """The id of a new host key."""
    return HostKeyId(create_host_key(operator, tenant=tenant, ceiling=Level.PUBLIC, ids=RandomIds())[0])


HEADER = {"format": "muniment journal", "version": 1, "database": "2026-11-23 12:00:00+00:00"}
ERASED: dict[str, Any] = {
    "tenant": 1, "event_id": "fedc0daf-bd2d-4138-9787-7b6d80b93273", "time": "2026-11-23 12:30:00+00:00", "agent": 7,
    "level": 2, "host_key_id": None, "method": "EraseItems", "kind": 1,
    "item_id": "d16cb731-cc92-4d30-995b-2090c148f6b1", "revision": None,
}  # fmt: skip
KEY = ERASED | {"agent": None, "kind": None, "item_id": None, "host_key_id": ERASED["item_id"]}


def journal_with(*entries: dict[str, Any]) -> bytes:
    """A journal whose hash is right, whatever its entries are."""
    lines = [json.dumps(line) for line in (HEADER | {"time": "2026-11-23 13:00:00+00:00"}, *entries)]
    text = "".join(f"{line}\n" for line in lines)
    trailer = {"entries": len(entries), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return f"{text}{json.dumps(trailer)}\n".encode()


JOURNAL = journal_with(ERASED, KEY | {"method": "host-key revoke"}, KEY | {"method": "tenant freeze"})
NO_JOURNALS = {
    "empty": b"",
    "text": b"text",
    "other JSON": b"[]\n{}\n",
    "cut after the header": JOURNAL.splitlines(keepends=True)[0],
    "cut at a line": b"".join(JOURNAL.splitlines(keepends=True)[:-1]),
    "cut within the last line": JOURNAL[:-2],
    "without a line": b"".join(JOURNAL.splitlines(keepends=True)[::2]),
    "edited header": JOURNAL.replace(b"13:00", b"14:00"),
    "edited": JOURNAL.replace(b'"agent": 7', b'"agent": 8'),
    "no kind": journal_with(ERASED | {"kind": None}),
    "unknown kind": journal_with(ERASED | {"kind": 5}),
    "agent of letters": journal_with(ERASED | {"agent": "x"}),
    "true agent": journal_with(ERASED | {"agent": True}),
    "large revision": journal_with(ERASED | {"revision": 2**40}),
    "revision 0": journal_with(ERASED | {"revision": 0}),
    "large tenant": journal_with(ERASED | {"tenant": 2**63}),
    "level 5": journal_with(ERASED | {"level": 5}),
    "key 0": journal_with(ERASED | {"host_key_id": 0}),
    "time without zone": journal_with(ERASED | {"time": "2026-11-23 12:30:00"}),
    "unknown method": journal_with(ERASED | {"method": "SaveMemory"}),
    "revocation of an item": journal_with(ERASED | {"method": "host-key revoke"}),
    "another field": journal_with(ERASED | {"more": 1}),
    "without a field": journal_with({name: ERASED[name] for name in ERASED if name != "revision"}),
}


@pytest.mark.parametrize("content", NO_JOURNALS.values(), ids=NO_JOURNALS)
def test_a_file_that_is_no_whole_journal_is_refused_before_anything_is_done(folder: Path, content: bytes):
    journal = folder / "muniment.journal"
    journal.write_bytes(content)

    done = run(folder, "restore", "absent.dump", "--journal", str(journal), "--data-dir", "restored")

    assert done.returncode == 1
    assert "is no journal, is cut off, or was changed" in done.stderr
    assert not (folder / "restored").exists()
    assert from_bytes(JOURNAL).entries


def test_a_journal_of_another_database_is_refused_before_anything_is_done(folder, kept):
    file, _ = kept
    journal = folder / "muniment.journal"
    journal.write_bytes(JOURNAL)

    done = run(folder, "restore", str(file), "--journal", str(journal), "--data-dir", "restored")

    assert done.returncode == 1
    assert "of different databases" in done.stderr
    assert not (folder / "restored").exists()


def test_a_journal_is_replaced_only_by_one_that_has_all_its_entries(folder, data_dir, kept):
    journal = folder / "muniment.journal"
    command = ("journal", str(journal), "--data-dir", str(data_dir))
    assert run(folder, *command).returncode == 0
    assert run(folder, *command).returncode == 0
    assert from_bytes(journal.read_bytes()).entries == ()
    for content, problem in ((JOURNAL, "entries that the database lacks"), (b"other", "is no journal")):
        journal.write_bytes(content)

        refused = run(folder, *command)

        assert refused.returncode == 1
        assert problem in refused.stderr
        assert journal.read_bytes() == content
    assert not list(folder.glob("*.part"))


def test_a_database_is_not_used_until_its_restore_has_ended(folder: Path, kept, monkeypatch):
    """Neither by a server, nor by operators; and the doctor says so."""
    file, _ = kept
    data = ("--data-dir", str(folder / "restored"))
    monkeypatch.setattr("muniment_server.admin.backup.end_restore", lambda *_: sys.exit(143))
    assert run(folder, "restore", str(file), *data).returncode == 143

    doctor = run(folder, "doctor", *data)
    history = run(folder, *HISTORY, *data)

    unfinished = "a restore into this database has not ended: run `muniment restore` into it again, which starts anew"
    assert (doctor.returncode, history.returncode) == (1, 1)
    assert f"✗ {unfinished}" in doctor.stdout
    assert unfinished in history.stderr
    serve = run_process(folder, "serve", *DEV, *data[1:], "--listen", "127.0.0.1:0")
    assert serve.returncode == 1
    assert unfinished in serve.stderr


def test_servers_that_run_and_older_ones_refuse_a_marked_database_too(database: Database):
    """By the grants, which they compare with the matrix every minute."""
    with database.as_admin() as admin:
        restoring.begin(admin)
        restoring.give_to_owner(admin)
    with database.connect(roles.CONTROL) as connection:
        found = grants.differences(connection)

    assert found == ["not in the matrix: muniment_owner: owns on schema muniment_restoring"]


def test_no_backup_is_restored_into_a_database_that_a_server_uses(
    postgres: EmbeddedPostgres, service: Service, tmp_path: Path
):
    file = tmp_path / "muniment.dump"
    with file.open("wb") as target:
        dumps.dump(service.database.admin, target)
    with cloned(postgres) as restored, restored.connect(roles.CONTROL):
        with pytest.raises(Failure, match="a server uses the database"):
            load(restored.admin, file)
        with restored.as_owner() as owner:
            assert restoring.problems(owner) == []


def test_a_backup_is_closed_to_others_and_replaces_nothing(folder, data_dir, kept):
    file, _ = kept
    before = file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    refused = run(folder, "backup", str(file), "--data-dir", str(data_dir))

    assert refused.returncode == 1
    assert "exists" in refused.stderr
    assert file.read_bytes() == before
    in_use = run(folder, "restore", str(file), "--data-dir", str(data_dir))
    assert in_use.returncode == 1
    assert "the database has data already" in in_use.stderr
    assert "nothing was changed" in in_use.stderr
    assert len(objects(run(folder, *HISTORY, "--data-dir", str(data_dir)))) == 3


def test_of_two_backups_to_one_name_the_first_is_kept_whole(tmp_path: Path):
    path = tmp_path / "muniment.dump"
    second = dumps.new_file(path)
    second.__enter__().write(b"par")
    with dumps.new_file(path) as first:
        first.write(b"whole")
    with pytest.raises(Failure, match="exists"):
        second.__exit__(None, None, None)

    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.proof
def test_a_backup_is_tried_and_a_damaged_one_fails(folder, data_dir, kept):
    """And nothing of it stays behind."""
    file, _ = kept
    scratch = folder / "scratch"
    scratch.mkdir(mode=0o711)
    good = run_process(folder, "verify", str(file), TMPDIR=str(scratch))
    assert good.returncode == 0, good.stderr
    assert "agents in the backup: 1; tenants: 1" in good.stdout
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2 :] = os.urandom(len(damaged) - len(damaged) // 2)
    file.write_bytes(damaged)

    bad = run_process(folder, "verify", str(file), TMPDIR=str(scratch))

    assert bad.returncode == 1
    assert "is not as `muniment backup` wrote it" in bad.stderr
    assert "hidden" not in bad.stderr
    assert list(scratch.iterdir()) == []


@pytest.mark.proof
def test_a_backup_goes_through_a_pipe(folder, data_dir, kept):
    """To a program that encrypts it, for one."""
    command = [*COMMAND, "backup", "-", "--data-dir", str(data_dir)]
    done = subprocess.run(command, env=environment_in(folder), cwd=folder, capture_output=True, check=True)

    assert done.stdout.startswith(b"PGDMP")
    assert done.stderr == b""


@pytest.mark.proof
@pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested")
def test_a_backup_of_another_postgres_is_restored_into_it_and_into_the_embedded_one(
    serving: Serve, folder: Path, url: str, passfile: Path
) -> None:
    """The passwords of the serving roles are known there, or made. An older Postgres than that of a backup says so."""
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    key = line_of(run(folder, "host-key", "create", "--tenant", "moved", "--ceiling", "public", "--quiet", **as_admin))
    file, newer = folder / "older.dump", folder / "newer.dump"
    assert run_process(folder, "backup", str(file), **as_admin).returncode == 0
    with psycopg.connect(admin_url(url), autocommit=True) as admin:
        admin.execute("CREATE DATABASE restored")
    target = url.replace("/kept", "/restored")
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(target)}

    done = run_process(folder, "restore", str(file), "--passfile", str(passfile), **as_admin)

    assert done.returncode == 0, done.stderr
    server = serving("--database-url", target, "--passfile", str(passfile), "--workers", "1")
    with muniment.connect(server.address, host_key=key) as host:
        assert host.create_agent("alice").agent_id == "alice"
    data = ("--data-dir", str(folder / "embedded"))
    assert run_process(folder, "restore", str(file), *data).returncode == 0
    assert "moved" in run_process(folder, "host-key", "list", *data).stdout
    assert run_process(folder, "backup", str(newer), *data).returncode == 0
    with psycopg.connect(admin_url(url), autocommit=True) as admin:
        admin.execute("CREATE DATABASE again")
    again = {"MUNIMENT_DATABASE_URL": admin_url(url.replace("/kept", "/again"))}
    refused = run_process(folder, "restore", str(newer), "--passfile", str(passfile), **again)
    assert refused.returncode == 1
    assert "restore it into the same version, or a newer one" in refused.stderr
    with psycopg.connect(admin_url(url.replace("/kept", "/again"))) as admin:
        assert admin.execute("SELECT FROM pg_namespace WHERE nspname = 'vault'").fetchall() == []


def test_a_backup_that_is_terminated_leaves_no_part_of_it(folder, data_dir, kept):
    conninfo = conninfo_of_running(cluster_directory(data_dir), user=SUPERUSER)
    assert conninfo is not None
    other = folder / "other.dump"
    with psycopg.connect(conninfo, autocommit=True) as observer, psycopg.connect(conninfo) as connection:
        connection.execute("LOCK TABLE vault.agent IN ACCESS EXCLUSIVE MODE")  # pg_dump waits for it
        command = [*COMMAND, "backup", str(other), "--data-dir", str(data_dir)]
        backup = subprocess.Popen(command, env=environment_in(folder), stderr=subprocess.DEVNULL)
        wait_until(lambda: observer.execute(_WAITS).fetchall(), "pg_dump waits")

        backup.terminate()

        assert backup.wait(20) == 128 + signal.SIGTERM
    assert not list(folder.glob("other.dump*"))


_WAITS = "SELECT FROM pg_stat_activity WHERE application_name = 'pg_dump' AND wait_event_type = 'Lock'"


def test_no_secret_of_the_url_is_on_the_command_line_of_pg_dump(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that only the command line could give is refused."""
    program = tmp_path / "pg_dump"
    program.write_text('#!/bin/sh\necho "$@"; echo "$PGPASSWORD"\n')
    program.chmod(0o700)
    monkeypatch.setattr(dumps, "_program", lambda *_: program)
    with (tmp_path / "output").open("wb") as target:
        dumps.dump(f"{service.database.admin} password=hunter2", target)
        with pytest.raises(Failure, match="sslpassword"):
            dumps.dump(f"{service.database.admin} sslpassword=hunter2", target)

    command_line, password, *_ = (tmp_path / "output").read_text().splitlines()
    assert "hunter2" not in command_line
    assert password == "hunter2"


def test_a_backup_of_before_conversations_had_ceilings_is_restored_with_its_conversations(
    postgres: EmbeddedPostgres, folder: Path
) -> None:
    """What operators do is written for the newest schema, which the backup lacks."""
    file = folder / "muniment.dump"
    with cloned(postgres) as older:
        with older.as_admin() as admin:
            for name in dumps._SCHEMAS:
                admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
        migrate.migrate(older.admin, until=_BEFORE_CONVERSATION_CEILINGS)
        with older.as_owner() as owner:
            owner.execute(_SESSION_OF_AN_INTERNAL_AGENT)
        with file.open("wb") as target:
            dumps.dump(older.admin, target)
    with cloned(postgres) as restored:
        done = run(folder, "restore", str(file), "--database-url", restored.admin)

        assert (done.returncode, "1 open session was closed" in done.stderr) == (0, True), done.stderr
        with restored.as_owner() as owner:
            assert owner.execute(_CEILINGS).fetchone() == ([2, 2, 2, 2],)
            assert grants.differences(owner) == []
