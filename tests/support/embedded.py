"""Real servers in directories of their own, in other processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

ROLES = ("muniment_owner", "muniment_public")
SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")
PYTHONS = (sys.executable, "/usr/bin/python3.11")
SUPERVISOR = Path(__file__).with_name("embedded_supervisor.py")

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
        self.report: dict[str, Any] = json.loads(self.process.stdout.readline())

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


def is_served(directory: Path) -> bool:
    """Whether a process of Postgres works in that data directory."""
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if process.readlink() == directory / "data":
                return True
    return False


def query(conninfo: str, statement: str, *parameters: object) -> Any:
    """The first value of the first row."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters or None)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None
