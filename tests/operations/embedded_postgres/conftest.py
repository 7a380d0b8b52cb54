"""Real servers in directories of their own, in this process and in others."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.support.commands import wait_until
from tests.support.embedded import ROLES, Supervisor, is_served


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
    """Start supervising processes; they are killed in the end, and Postgres stops with them, which takes a moment."""
    made: list[Supervisor] = []
    directories: set[Path] = set()

    def make(directory: Path, **options: Any) -> Supervisor:
        directories.add(directory)
        made.append(Supervisor(directory, **options))
        return made[-1]

    yield make
    for process in made:
        process.kill()
    wait_until(lambda: not any(is_served(each) for each in directories), "Postgres outlived its supervisor")
