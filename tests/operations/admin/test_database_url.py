"""Any Postgres by URL: migrated by an administrator, served with a passfile."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from muniment_server.postgres import roles
from muniment_server.runtime import clocks
from muniment_server.runtime import passfile as passfiles
from tests.support.commands import SYSTEM_POSTGRES, Server, line_of, objects, run, run_process
from tests.support.external_postgres import PASSWORD, admin_url, migrate

pytestmark = pytest.mark.skipif(not SYSTEM_POSTGRES, reason="NO SYSTEM POSTGRES in /usr/lib/postgresql: not tested")

_NEED_SCHEMA = (("backup", "new.dump"), ("purge", "--older-than", "30d"), ("journal", "new.journal"))
_TRUSTED_CONVERSATION = """
WITH tenant AS (
    INSERT INTO vault.tenant (tenant, name) OVERRIDING SYSTEM VALUE VALUES (77, 'adopted')
),
agent AS (
    INSERT INTO vault.agent (tenant, agent, agent_id, display_name, language, memory_enabled, user_profile_enabled,
                             memory_char_limit, user_char_limit, ceiling, known_from)
    VALUES (77, 1, 'alice', '', 'simple', TRUE, TRUE, 1000, 1000, 2, 1)
)
INSERT INTO vault.conversation (tenant, agent, conversation_id, ceiling, taint, trusted)
VALUES (77, 1, 'chat', 2, 1, TRUE)
"""
SERVE = ("serve", "--listen", "127.0.0.1:0", "--workers", "1")


def test_a_passfile_without_the_passwords_of_existing_roles_names_the_command_that_sets_new_ones(folder, url, passfile):
    """`restore` says so, too, and has no such option."""
    refused = migrate(folder, url, folder / "new")

    assert refused.returncode == 1
    assert "name the passfile that has them, or give them new passwords: muniment migrate --rotate" in refused.stderr


def test_a_server_that_was_overtaken_is_not_served(root_folder: Path, url: str, passfile: Path) -> None:
    """It says what to do; and once that is done, it serves, and the doctor is content."""
    state = root_folder / "state"
    state.mkdir()
    (state / "epoch.json").write_text('{"system": "1", "timeline": 1}')
    options = ("--database-url", url, "--passfile", str(passfile), "--state-dir", str(state))
    refused = run_process(root_folder, *SERVE, *options)
    assert refused.returncode == 1
    assert "system 1 was used before" in refused.stderr
    assert "muniment database adopt" in refused.stderr
    assert "✗ the database server is refused" in run_process(root_folder, "doctor", *options).stdout

    done = run_process(
        root_folder,
        *("database", "adopt", "--yes", "--state-dir", str(state)),
        MUNIMENT_DATABASE_URL=admin_url(url),
    )

    assert done.returncode == 0, done.stderr
    assert "✓ an old primary is refused" in run_process(root_folder, "doctor", *options).stdout
    assert "! not fenced" in run_process(root_folder, "doctor", *options[:4]).stdout


@pytest.mark.usefixtures("passfile")  # its database is migrated
def test_in_a_database_that_is_adopted_no_conversation_is_trusted(root_folder: Path, url: str) -> None:
    """It may lack that one was raised."""
    with psycopg.connect(admin_url(url)) as admin:
        admin.execute(_TRUSTED_CONVERSATION)

    done = run_process(
        root_folder,
        *("database", "adopt", "--yes", "--state-dir", str(root_folder)),
        MUNIMENT_DATABASE_URL=admin_url(url),
    )

    assert done.returncode == 0, done.stderr
    with psycopg.connect(admin_url(url)) as admin:
        assert admin.execute("SELECT trusted FROM vault.conversation").fetchall() == [(False,)]
        logged = "SELECT outcome FROM muniment_control.audit WHERE method = 'database adopt' AND tenant = 77"
        assert admin.execute(logged).fetchall() == [("OK",)]


@pytest.mark.parametrize("kept", [True, False])
def test_a_server_without_a_state_directory_says_so(
    serving: Callable[..., Server], folder: Path, url: str, passfile: Path, kept: bool
) -> None:
    state = ("--state-dir", str(folder / "state")) if kept else ()
    server = serving(*SERVE[1:], "--database-url", url, "--passfile", str(passfile), *state)

    assert ("not fenced" in server.errors.read_text()) is not kept
    assert (folder / "state" / "epoch.json").exists() is kept


@pytest.mark.usefixtures("passfile")  # its database is migrated
def test_without_a_state_directory_an_adoption_is_refused(root_folder: Path, url: str) -> None:
    done = run_process(root_folder, "database", "adopt", "--yes", MUNIMENT_DATABASE_URL=admin_url(url))

    assert done.returncode == 1
    assert "--state-dir" in done.stderr


def test_the_passfile_is_closed_to_others_and_names_each_role(passfile):
    assert stat.S_IMODE(passfile.stat().st_mode) == 0o600
    assert {line.split(":")[3] for line in passfile.read_text().splitlines()} == set(roles.SERVING)


def test_a_second_migration_changes_nothing(folder, url, passfile):
    before = passfile.read_bytes()
    done = migrate(folder, url, passfile)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Nothing to do" in done.stderr
    assert passfile.read_bytes() == before


def test_a_new_role_gets_the_password_that_the_passfile_has_for_it(url, passfile, monkeypatch):
    """So an operator can choose the passwords, and a migration that cannot write needs not to."""
    monkeypatch.setattr(passfiles, "missing_roles", lambda _: {roles.AUDITOR})
    chosen = re.sub(rf"(:{roles.AUDITOR}:).*", r"\1a password: of our own".replace(": ", r"\\: "), passfile.read_text())
    passfile.write_text(chosen)

    done = passfiles.migrate_with_passfile(admin_url(url), passfile)

    assert f"wrote {passfile}" not in done
    assert passfile.read_text() == chosen
    with psycopg.connect(admin_url(url)) as admin:
        assert set(passfiles.passwords_of_roles(admin, passfile)) == set(roles.SERVING)


def test_an_unknown_passfile_is_refused_and_not_created(folder, url, passfile):
    done = migrate(folder, url, folder / "elsewhere")
    assert done.returncode == 1
    assert "--rotate" in done.stderr
    assert list(folder.iterdir()) == []


def test_a_server_serves_it_with_the_passfile_and_passwords_can_be_rotated(serving, folder, url, passfile):
    server = serving("--database-url", url, "--passfile", str(passfile), "--workers", "1")
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    key = line_of(
        run(folder, "host-key", "create", "--tenant", "acme", "--ceiling", "restricted", "--quiet", **as_admin)
    )
    as_host = {"MUNIMENT_ADDRESS": server.address, "MUNIMENT_HOST_KEY": key}
    assert run(folder, "agent", "create", "alice", **as_host).returncode == 0

    before = passfile.read_text()
    if os.geteuid() == 0:
        shutil.chown(passfile, "postgres")
    owner = passfile.stat().st_uid
    rotated = migrate(folder, url, passfile, "--rotate")
    assert rotated.returncode == 0, rotated.stderr
    assert passfile.stat().st_uid == owner
    assert stat.S_IMODE(passfile.stat().st_mode) == 0o600
    assert not set(before.splitlines()) & set(passfile.read_text().splitlines())

    saved = run(folder, "memory", "save", "k", "v", "--agent", "alice", "--taint", "internal", "--json", **as_host)
    assert objects(saved)[0]["classification"] == "INTERNAL"
    assert server.stop() == 0


def test_a_server_without_a_valid_host_key_says_whose_url_makes_one(serving, folder, url, passfile):
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    for key in objects(run(folder, "host-key", "list", "--json", **as_admin)):
        run(folder, "host-key", "revoke", key["host_key_id"], "--keep-sessions", **as_admin)
    server = serving("--database-url", url, "--passfile", str(passfile), "--workers", "1")
    output, _, command = (server.process.stdout.readline() for _ in range(3))

    assert "the URL of an administrator in MUNIMENT_DATABASE_URL" in output
    assert command == "  muniment host-key create --tenant NAME --ceiling restricted\n"


def test_a_server_prints_what_operators_paste_in_another_shell(serving, folder, url, passfile):
    state, metrics = folder / "state of it", folder / "m.sock"
    state.mkdir()
    options = ("--passfile", str(passfile), "--state-dir", str(state), "--metrics", f"unix:{metrics}")
    server = serving("--database-url", url, *options, "--workers", "1")

    while (line := server.process.stdout.readline()).strip() != f"export MUNIMENT_METRICS=unix:{metrics}":
        server.output += line

    assert "MUNIMENT_DATABASE_URL to the URL of an administrator, and paste" in server.output
    assert f"\n  export MUNIMENT_PASSFILE={passfile}\n  export MUNIMENT_STATE_DIR='{state}'\n" in server.output


def test_a_server_whose_login_the_database_refuses_says_so(folder, url, passfile):
    wrong = folder / "wrong"
    wrong.write_text("*:*:*:*:hush\n")
    wrong.chmod(0o600)
    done = run_process(folder, *SERVE, "--database-url", url, "--passfile", str(wrong))
    assert (done.returncode, done.stdout) == (1, "")
    assert "--passfile" in done.stderr
    assert "hush" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_passfile_counts_and_not_the_password_in_the_environment(serving, folder, url, passfile):
    """PGPASSWORD may be an operator's. libpq would send it instead, and `doctor` would send it at each log-in."""
    wrong = {"PGPASSWORD": "hush"}
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url), **wrong}
    migrated = run_process(folder, "migrate", "--passfile", str(passfile), **as_admin)
    examined = run_process(folder, "doctor", "--passfile", str(passfile), **as_admin)
    server = serving("--database-url", url, "--passfile", str(passfile), **wrong)

    assert migrated.returncode == 0, migrated.stderr
    assert examined.returncode == 0, examined.stdout
    assert server.address
    assert server.stop() == 0


def test_a_passfile_in_the_url_of_a_server_counts_and_not_the_password_in_the_environment(
    serving, folder, url, passfile
):
    file = folder / "servers.toml"
    file.write_text(f'[servers]\na = "{url}?passfile={passfile}"\n')
    wrong = {"PGPASSWORD": "hush"}
    examined = run_process(folder, "doctor", "--servers", str(file), **wrong)
    server = serving("--servers", str(file), **wrong)
    file.write_text(file.read_text() + f'b = "{url}?passfile={passfile}"\n')
    twice = run_process(folder, "doctor", "--servers", str(file), **wrong)

    assert examined.returncode == 0, examined.stdout
    assert "would give new tenants the same numbers" in twice.stdout
    assert server.address
    assert server.stop() == 0


def test_a_passfile_that_others_may_read_is_refused(folder, url, passfile):
    open_to_all = folder / "open"
    open_to_all.write_bytes(passfile.read_bytes())
    open_to_all.chmod(0o644)
    done = run_process(folder, *SERVE, "--database-url", url, "--passfile", str(open_to_all))
    assert done.returncode == 1
    assert "chmod 600" in done.stderr


def test_a_database_that_is_not_ready_is_refused_with_what_to_do(folder, url, passfile):
    empty = url.replace("/kept", "/postgres")
    done = run_process(folder, *SERVE, "--database-url", empty, "--passfile", str(passfile))
    assert done.returncode == 1
    assert "muniment migrate" in done.stderr
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(empty)}
    assert "muniment migrate" in run(folder, "host-key", "list", **as_admin).stderr


def test_what_a_database_without_a_schema_needs_is_said_by_each_command(folder, url, passfile):
    """Its server has the roles: a restore that was killed before it changed anything leaves that."""
    empty = url.replace("/kept", "/empty")
    with psycopg.connect(admin_url(url), autocommit=True) as admin:
        admin.execute("CREATE DATABASE empty")
    checked = run_process(folder, "doctor", "--passfile", str(passfile), MUNIMENT_DATABASE_URL=admin_url(empty))
    others = [run(folder, *command, MUNIMENT_DATABASE_URL=admin_url(empty)) for command in _NEED_SCHEMA]

    assert (checked.returncode, "Error" in checked.stderr) == (1, False)
    assert ["muniment migrate" in line for line in checked.stdout.splitlines() if line.startswith("✗")] == [True] * 2
    assert ["muniment migrate" in done.stderr for done in others] == [True] * len(_NEED_SCHEMA)


def test_the_doctor_checks_it_with_and_without_an_administrator(folder, url, passfile):
    healthy = run_process(folder, "doctor", "--passfile", str(passfile), MUNIMENT_DATABASE_URL=admin_url(url))
    assert healthy.returncode == 0, healthy.stdout
    assert "the ledgers are complete" in healthy.stdout
    without = run_process(folder, "doctor", "--passfile", str(passfile), "--database-url", url)
    assert without.returncode == 0, without.stdout
    assert "the ledgers were not checked" in without.stdout
    assert PASSWORD not in healthy.stdout + healthy.stderr


@contextmanager
def clock_that_is_wrong(url: str, offset: str) -> Iterator[None]:
    """The clock of the database differs from this machine's."""
    with psycopg.connect(admin_url(url), autocommit=True) as admin:
        clock = "CREATE OR REPLACE FUNCTION vault.clock() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE RETURN "
        admin.execute(f"{clock} pg_catalog.now() {offset}::interval".encode())
        try:
            yield
        finally:
            admin.execute(f"{clock} pg_catalog.now()".encode())


@pytest.mark.parametrize("what", [(), ("--sessions",)])
@pytest.mark.parametrize(("offset", "says"), [("+ '61 s'", "s ahead of this"), ("- '62 s'", "s behind this")])
def test_a_database_whose_clock_is_wrong_is_not_purged(folder, url, passfile, offset, says, what):
    """Versions and sessions are removed by their age. The doctor reports it, too."""
    as_admin = {"MUNIMENT_DATABASE_URL": admin_url(url)}
    with clock_that_is_wrong(url, offset):
        refused = run(folder, "purge", *what, "--older-than", "90d", "--yes", **as_admin)
        checked = run_process(folder, "doctor", "--passfile", str(passfile), **as_admin)

    assert refused.returncode == 1
    assert says in refused.stderr
    assert says in checked.stdout
    assert run(folder, "purge", *what, "--older-than", "90d", "--yes", **as_admin).returncode == 0


@pytest.mark.proof
@pytest.mark.parametrize("what", [(), ("--sessions",)])
def test_only_the_comparison_of_the_clocks_stops_it(folder, url, passfile, monkeypatch, what):
    monkeypatch.setattr(clocks, "warnings", lambda _: [])
    with clock_that_is_wrong(url, "+ '61 s'"):
        done = run(folder, "purge", *what, "--older-than", "90d", "--yes", MUNIMENT_DATABASE_URL=admin_url(url))

    assert done.returncode == 0, done.stderr
