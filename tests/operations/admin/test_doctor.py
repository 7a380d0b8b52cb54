"""`muniment doctor`: a healthy server, and each thing that can be wrong."""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from muniment_server.admin import checks
from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.postgres import roles
from muniment_server.postgres.epochs import Epoch, EpochGuard
from muniment_server.runtime import databases
from tests.support.commands import objects, run, run_process


@pytest.fixture
def doctor(dev):
    """What the doctor finds wrong with the server in development."""

    def examine() -> list[str]:
        done = run_process(dev.folder, "doctor", "--data-dir", ".muniment")
        wrong = [line for line in done.stdout.splitlines() if line.startswith("✗")]
        assert done.returncode == (1 if wrong else 0), done.stderr
        assert done.stderr == ""
        return wrong

    return examine


@pytest.fixture
def admin(dev):
    """The administrator's connection to its database."""
    conninfo = conninfo_of_running(dev.folder / ".muniment" / databases.CLUSTER, user=databases.SUPERUSER)
    assert conninfo is not None
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


def test_a_healthy_server_has_no_problems(doctor):
    assert doctor() == []


def test_credentials_that_others_may_read_are_wrong(doctor, dev):
    file = dev.folder / ".muniment" / "development.json"
    file.chmod(0o640)
    try:
        assert ["chmod 600" in wrong for wrong in doctor()] == [True]
    finally:
        file.chmod(0o600)


@pytest.mark.parametrize("name", [".", "postgres", "state"])
def test_a_directory_in_which_any_user_may_write_is_wrong(doctor, dev, name):
    """Whoever may write in it can replace what is in it: the database, or the highest timeline."""
    directory = dev.folder / ".muniment" / name
    before = directory.stat().st_mode
    directory.chmod(0o777)
    try:
        assert ["any user can replace what is in" in wrong for wrong in doctor()] == [True]
    finally:
        directory.chmod(before)


def test_a_directory_in_the_place_of_the_credentials_is_no_file(tmp_path):
    (found,) = checks._check_credentials(tmp_path)

    assert found.text.startswith(f"{tmp_path} is not a regular file: remove it")


def test_a_disk_that_is_nearly_full_is_a_problem(tmp_path, monkeypatch):
    assert checks._check_disk(tmp_path).verdict is checks.Verdict.GOOD
    monkeypatch.setattr(checks, "LEAST_FREE", 2**63)
    assert checks._check_disk(tmp_path).verdict is checks.Verdict.BAD


def test_an_excess_grant_is_a_problem(doctor, admin):
    admin.execute("GRANT SELECT ON muniment_internal.item TO muniment_public")
    try:
        assert ["muniment_public: SELECT on muniment_internal.item" in wrong for wrong in doctor()] == [True]
    finally:
        admin.execute("REVOKE SELECT ON muniment_internal.item FROM muniment_public")


@pytest.mark.parametrize("setting", ["log_statement = 'all'", "log_parameter_max_length_on_error = -1"])
def test_a_log_with_parameters_is_wrong(doctor, admin, setting):
    """Once, though the gate closes for the first of them too."""
    name = setting.split()[0]
    try:
        admin.execute(f"ALTER DATABASE muniment SET {setting}".encode())
        admin.execute("ALTER DATABASE muniment SET log_parameter_max_length = -1")
        assert [name in wrong for wrong in doctor()] == [True]
    finally:
        admin.execute(f"ALTER DATABASE muniment RESET {name}".encode())
        admin.execute("ALTER DATABASE muniment RESET log_parameter_max_length")


def test_a_log_without_parameters_is_well(doctor, dev):
    assert "logs no parameters" in run_process(dev.folder, "doctor", "--data-dir", ".muniment").stdout


@pytest.mark.proof
def test_a_server_that_was_overtaken_is_wrong(doctor, dev):
    file = dev.folder / ".muniment" / "state" / "epoch.json"
    seen = file.read_text()
    try:
        file.write_text(json.dumps(json.loads(seen) | {"timeline": 2}))
        refused = run(dev.folder, "agent", "list")
        assert refused.returncode == 1, "every worker looks at the file"
        assert "UNAVAILABLE" in refused.stderr or "DEADLINE_EXCEEDED" in refused.stderr
        assert ["timeline 1, and timeline 2 was seen" in wrong for wrong in doctor()] == [True]
    finally:
        file.write_text(seen)
    assert run(dev.folder, "agent", "list").returncode == 0


def test_a_role_that_may_not_log_in_is_wrong(doctor, admin):
    admin.execute("ALTER ROLE muniment_auditor NOLOGIN")
    try:
        assert ["muniment_auditor cannot log in" in wrong for wrong in doctor()] == [True]
    finally:
        admin.execute("ALTER ROLE muniment_auditor LOGIN")


def test_a_lost_version_is_wrong(doctor, admin, dev):
    assert run(dev.folder, "memory", "save", "torn", "x", "--agent", "alice", "--taint", "public").returncode == 0
    admin.execute("UPDATE muniment_public.item SET revision = revision + 1 WHERE name = 'torn'")
    try:
        assert ["1 items at PUBLIC are lost, or have lost versions" in wrong for wrong in doctor()] == [True]
    finally:
        admin.execute("UPDATE muniment_public.item SET revision = revision - 1 WHERE name = 'torn'")


def test_a_wrong_count_of_what_is_stored_is_wrong(doctor, admin, dev):
    assert run(dev.folder, "agent", "create", "counted").returncode == 0
    admin.execute("UPDATE muniment_public.storage SET items = items + 1")
    try:
        assert ["wrong counts of what they store: run `muniment reindex`" in wrong for wrong in doctor()] == [True]
    finally:
        admin.execute("UPDATE muniment_public.storage SET items = items - 1")


def test_an_agent_that_is_nearly_full_is_named(doctor, dev):
    run(dev.folder, "agent", "create", "tiny", "--max-items", "4")
    run(dev.folder, "memory", "save", "plan", "CANARY", "--agent", "tiny", "--taint", "public")

    assert doctor() == []
    found = run_process(dev.folder, "doctor", "--data-dir", ".muniment").stdout
    assert "! tiny of development is nearly full at PUBLIC: 4 of 4 items" in found
    assert "CANARY" not in found


def test_an_agent_is_nearly_full_only_where_it_has_stored_something(doctor, dev):
    """At PUBLIC it has its first blocks."""
    run(dev.folder, "agent", "create", "barred", "--max-items", "0", "--max-bytes", "0")

    found = run(dev.folder, "doctor", "--data-dir", ".muniment").stdout
    [named] = [line for line in found.splitlines() if "barred" in line]
    assert "at PUBLIC: 3 of 0 items, 768 of 0 bytes" in named


def test_vectors_of_another_embedder_are_wrong(doctor, admin, dev):
    assert run(dev.folder, "memory", "save", "meant", "x", "--agent", "alice", "--taint", "public").returncode == 0
    admin.execute(
        "UPDATE muniment_public.meaning SET embedder = 99, signs = repeat('0', 384)::bit(384),"
        " vector = array_fill(0::smallint, '{384}') WHERE name = 'meant'"
    )
    try:
        assert ["run `muniment reindex`" in wrong for wrong in doctor()] == [True]
    finally:
        admin.execute("UPDATE muniment_public.meaning SET embedder = NULL, signs = NULL, vector = NULL")


def test_it_says_that_search_is_semantic(dev):
    assert "search uses words and embeddings" in run_process(dev.folder, "doctor", "--data-dir", ".muniment").stdout


def test_a_missing_directory_is_not_a_problem(folder):
    """It may also be that the database is elsewhere, and doctor has not been given its URL."""
    done = run_process(folder, "doctor", "--data-dir", "new")
    assert done.returncode == 0
    assert "muniment serve" in done.stdout
    assert "to check a Postgres of your own, --database-url" in done.stdout
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", [("doctor",), ("serve",), ("backup", "new.dump")], ids=lambda command: command[0])
@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "missing"])
def test_a_database_that_a_server_has_used_is_not_replaced_by_a_new_one(folder, command, is_empty):
    data = folder / ".muniment" / "postgres" / "data"
    data.mkdir(parents=True)
    EpochGuard(folder / ".muniment" / "state").admit(Epoch("1", 1))
    if not is_empty:
        data.rmdir()

    done = run(folder, *command, "--data-dir", ".muniment")

    assert done.returncode == 1
    assert "is gone, and a server has used it: put it back" in done.stdout + done.stderr
    assert [*data.glob("*")] == []


def test_a_stopped_database_is_started_for_the_checks(folder, data_dir):
    done = run_process(folder, "doctor", "--data-dir", ".muniment")
    assert done.returncode == 0, done.stdout
    assert "the ledgers are complete" in done.stdout


def test_a_database_that_cannot_be_reached_is_wrong(folder):
    done = run_process(folder, "doctor", "--database-url", "postgresql://127.0.0.1:1/muniment")
    assert done.returncode == 1
    [wrong] = [line for line in done.stdout.splitlines() if line.startswith("✗")]
    assert wrong.startswith("✗ the database does not answer (")
    assert wrong.endswith(": start it, or correct its address, and run doctor again")


@pytest.mark.parametrize("sslmode", ["prefer", "require"])
def test_a_database_that_refuses_logins_or_tls_is_not_silent(folder, url, sslmode):
    """The remedy is not to start it: each role is named, with what the server answered."""
    passfile = folder / "passfile"
    passfile.touch(0o600)
    done = run_process(folder, "doctor", "--database-url", f"{url}?sslmode={sslmode}", "--passfile", str(passfile))

    assert done.returncode == 1
    assert done.stdout.count("cannot log in") == len(roles.SERVING)
    assert "does not answer" not in done.stdout


def test_that_no_passfile_is_named_is_said_once(folder, url):
    done = run_process(folder, "doctor", "--database-url", url)

    assert done.returncode == 1
    assert done.stdout.count("cannot log in") == 1
    assert "; no passfile is named: give --passfile FILE, or set MUNIMENT_PASSFILE\n" in done.stdout


def test_its_findings_are_objects_with_json(dev, admin):
    """The same ones, and the same exit status."""
    shown = run_process(dev.folder, "doctor", "--data-dir", ".muniment").stdout
    healthy = run_process(dev.folder, "doctor", "--data-dir", ".muniment", "--json")
    admin.execute("ALTER ROLE muniment_auditor NOLOGIN")
    try:
        broken = run_process(dev.folder, "doctor", "--data-dir", ".muniment", "--json")
    finally:
        admin.execute("ALTER ROLE muniment_auditor LOGIN")

    found = objects(healthy)
    assert [_without_numbers(each["text"]) for each in found] == [
        _without_numbers(line[2:]) for line in shown.splitlines()
    ]
    assert {each["verdict"] for each in found} <= {"GOOD", "WORTH_KNOWING"}
    assert broken.returncode == 1
    assert [each for each in map(json.loads, broken.stdout.splitlines()) if each["verdict"] == "BAD"]


def _without_numbers(text: str) -> str:
    """How much of the disk is free changes all the time."""
    return re.sub(r"[\d,]+", "", text)
