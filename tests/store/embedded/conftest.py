"""Real servers in directories of their own, in this process and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres

ROLES = ("muniment_owner", "muniment_public")
SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")
PYTHONS = (sys.executable, "/usr/bin/python3.11")
SUPERVISOR = Path(__file__).with_name("supervisor.py")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


class Supervisor:
    """A process that serves a directory, as a Muniment server would."""

    def __init__(self, directory: Path, *, uid: int | None = None, command: tuple[str, ...] = (), **options: str):
        rights: dict[str, Any] = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.process = subprocess.Popen(
            [*command, python_for(uid), str(SUPERVISOR), str(directory), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            **rights,
        )
        assert self.process.stdout is not None
        self.said: dict[str, Any] = json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()
        self.process.communicate()

    def finish(self) -> int:
        """Let it stop its server, and return its exit status."""
        self.process.communicate("")
        return self.process.returncode


def python_for(uid: int | None) -> str:
    """A Python that the user *uid* may run: ours may live below root's home."""
    if uid is None:
        return sys.executable
    for python in PYTHONS:
        probe = [python, "-c", "import sys; assert sys.version_info[:2] == (3, 11)"]
        try:
            if subprocess.run(probe, check=False, capture_output=True, cwd="/", user=uid, env={}).returncode == 0:
                return python
        except OSError:
            continue
    pytest.skip(f"no Python 3.11 that uid {uid} may run, of {PYTHONS}")


def query(conninfo: str, statement: str, *parameters: object) -> Any:
    """The first value of the first row."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters or None)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


@pytest.fixture
def parent() -> Iterator[Path]:
    """A directory that any account may pass through, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="muniment-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def directory(parent: Path) -> Path:
    """A data directory that is not there yet."""
    return parent / "pg"


@pytest.fixture(scope="session")
def made_before() -> Iterator[Path]:
    """A directory that was served once, to copy: initdb takes a second."""
    with tempfile.TemporaryDirectory(prefix="muniment-test-") as name:
        Path(name).chmod(0o711)
        with EmbeddedPostgres(Path(name, "pg"), roles=ROLES, durable=False):
            pass
        yield Path(name, "pg")


@pytest.fixture
def embedded(directory: Path, made_before: Path) -> Iterator[Callable[..., EmbeddedPostgres]]:
    """Make servers, by default on `directory`; they are stopped in the end.

    A directory that is not there is a copy of one made before, unless it is to be fresh.
    """
    made: list[EmbeddedPostgres] = []

    def make(path: Path = directory, *, fresh: bool = False, **options: Any) -> EmbeddedPostgres:
        chosen: dict[str, Any] = {"roles": ROLES, "durable": False} | options
        server = EmbeddedPostgres(path, **chosen)
        if not (fresh or path.exists() or "bindir" in options):
            subprocess.run(["cp", "--archive", made_before, path], check=True)
        made.append(server)
        return server

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def supervisor() -> Iterator[Callable[..., Supervisor]]:
    """Start supervising processes; they are killed in the end, and Postgres stops with them."""
    made: list[Supervisor] = []

    def make(directory: Path, **options: Any) -> Supervisor:
        made.append(Supervisor(directory, **options))
        return made[-1]

    yield make
    for process in made:
        process.kill()
