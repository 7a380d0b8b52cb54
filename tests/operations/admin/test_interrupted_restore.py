"""A restore interrupted at any step leaves a database that nothing uses, and that a second restore completes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from muniment_server.admin import dumps
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import size_of
from muniment_server.domain.classification import Classification as Level
from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.runtime import restoring
from tests.support.commands import environment_in, run
from tests.support.databases import cloned
from tests.support.services import Service

UNFINISHED = "a restore into this database has not ended: run `muniment restore` into it again, which starts anew"
SERVE = ("serve", "--dev", "--workers", "1", "--listen", "127.0.0.1:0")
STEPS = [
    "muniment_server.runtime.schema.migrate",
    "muniment_server.admin.dumps.load",
    "muniment_server.admin.dumps._restore",
    "muniment_server.admin.backup.end_what_is_open",
    "muniment_server.admin.backup.end_restore",
    "muniment_server.runtime.restoring.end",
]
"""What a restore does once the database is marked, in this order."""
STEPS_OF_A_FOLDER = [
    "muniment_server.embedded_postgres.server.ensure_cluster",
    "muniment_server.embedded_postgres.server.create_database",
    "muniment_server.admin.dumps._require_unused",
    *STEPS,
    "muniment_server.runtime.restoring.end_in",
]
_KILLED_AT = """
import os, signal, sys
from unittest.mock import patch
from muniment.cli.root import main
import muniment_server.admin.backup
patch(sys.argv[1], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)).start()
main(sys.argv[2:])
"""


@pytest.fixture
def file(service: Service, tmp_path: Path) -> Path:
    """A backup of one tenant with an open session."""
    service.session(Level.CONFIDENTIAL).save_memory(key="plan", content="hidden")
    with (tmp_path / "muniment.dump").open("wb") as target:
        dumps.dump(service.database.admin, target)
    return tmp_path / "muniment.dump"


def interrupt_at(step: str, monkeypatch: pytest.MonkeyPatch, restore: Callable[[], object]) -> None:
    """Run *restore* up to *step*, which ends it as Ctrl-C does."""
    with monkeypatch.context() as patched:
        patched.setattr(step, lambda *_, **__: sys.exit(130))
        restore()


def check_refused(folder: Path, *database: str) -> None:
    """No command uses the database, and each says why."""
    for command in (("doctor",), ("migrate",), ("host-key", "list")):
        done = run(folder, *command, *database)
        assert (command, done.returncode) == (command, 1), done.stdout
        assert UNFINISHED in done.stdout + done.stderr


@pytest.mark.parametrize("step", STEPS)
def test_a_database_whose_restore_was_interrupted_is_used_by_nothing_until_it_is_repeated(
    postgres: EmbeddedPostgres, file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with cloned(postgres) as restored:
        database = ("--database-url", restored.admin)
        interrupt_at(step, monkeypatch, lambda: run(folder, "restore", str(file), *database))

        check_refused(folder, *database)

        done = run(folder, "restore", str(file), *database)
        assert done.returncode == 0, done.stderr
        assert "1 open session was closed" in done.stderr
        with connect_operator(restored.admin) as operator:
            assert size_of(operator).agents == 1
        with restored.as_owner() as owner:
            assert restoring.problems(owner) == []


@pytest.mark.parametrize(
    "step",
    [
        each if each in (STEPS_OF_A_FOLDER[0], STEPS_OF_A_FOLDER[-1]) else pytest.param(each, marks=pytest.mark.proof)
        for each in STEPS_OF_A_FOLDER
    ],
)
@pytest.mark.proof
def test_a_folder_whose_restore_was_killed_is_used_by_nothing_until_it_is_repeated(
    file: Path, folder: Path, step: str
) -> None:
    data = ("--data-dir", str(folder / "restored"))
    command = [sys.executable, "-c", _KILLED_AT, step, "restore", str(file), *data]
    killed = subprocess.run(command, cwd=folder, env=environment_in(folder), capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr

    check_refused(folder, *data)
    serve = run(folder, *SERVE, *data)

    assert serve.returncode == 1
    assert UNFINISHED in serve.stderr
    done = run(folder, "restore", str(file), *data)
    assert done.returncode == 0, done.stderr
    doctor = run(folder, "doctor", *data)
    assert doctor.returncode == 0, doctor.stdout


def test_a_database_is_marked_before_the_roles_are_made_and_its_mark_is_the_owners_later(
    postgres: EmbeddedPostgres, file: Path
) -> None:
    with cloned(postgres) as restored, restored.as_admin() as admin, dumps.emptied(restored.admin, file):
        assert restoring.problems(admin) != []
        assert admin.execute("SELECT to_regnamespace('vault')").fetchone() == (None,)
        with pytest.raises(Exception, match="another restore into the database is under way"):
            dumps.emptied(restored.admin, file).__enter__()


def test_what_a_killed_restore_still_loads_is_ended_by_the_next_one(postgres: EmbeddedPostgres, file: Path) -> None:
    with cloned(postgres) as restored:
        with dumps.emptied(restored.admin, file):
            pass
        with psycopg.connect(restored.admin, application_name="pg_restore") as left:
            left.execute("CREATE SCHEMA vault")
            with dumps.emptied(restored.admin, file), pytest.raises(psycopg.OperationalError):
                left.execute("SELECT 1")
