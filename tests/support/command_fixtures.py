"""Fixtures for tests of commands: folders, data directories, servers. A `conftest.py` imports those it offers."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import WORDS_ALONE, Done, Server, environment_in, line_of, objects, run, run_process

_numbers = itertools.count()


@pytest.fixture(scope="package")
def root_folder() -> Iterator[Path]:
    """A folder that any account may pass through, unlike those of pytest: root's Postgres runs as another."""
    with tempfile.TemporaryDirectory(prefix="muniment-cli-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def folder(root_folder: Path) -> Path:
    """A working directory for one test."""
    made = root_folder / f"test{next(_numbers)}"
    made.mkdir(mode=0o711)
    return made


@pytest.fixture(scope="package")
def made_before(root_folder: Path) -> Path:
    """A data directory that is ready, to copy: initdb takes a second."""
    data_dir = root_folder / "made"
    done = run_process(root_folder, "migrate", "--data-dir", str(data_dir))
    assert done.returncode == 0, done.stderr
    return data_dir


@pytest.fixture
def data_dir(folder: Path, made_before: Path) -> Path:
    """A data directory of one test, ready to be served."""
    subprocess.run(["cp", "--archive", made_before, folder / ".muniment"], check=True)
    return folder / ".muniment"


@pytest.fixture
def serving(folder: Path) -> Iterator[Callable[..., Server]]:
    """Start servers in the test's folder; they are ended with the test.

    They have one worker and no embedder, unless the test asks for more: each takes half a second of CPU to start.
    """
    made: list[Server] = []

    def serve(*arguments: str, embeds: bool = False, **environment: str) -> Server:
        chosen = [*arguments]
        for option, usual in (("--listen", "127.0.0.1:0"), ("--workers", "1")):
            chosen += [] if option in arguments else [option, usual]
        words_alone = {} if embeds else {"PYTHONPATH": str(WORDS_ALONE)}
        made.append(Server(folder, *chosen, environment=environment_in(folder, **words_alone, **environment)))
        return made[-1]

    yield serve
    for server in made:
        server.end()


@contextmanager
def in_development(folder: Path, made_before: Path, *options: str, **environment: str) -> Iterator[Server]:
    """Start a server in development in *folder*, which is new, for the block. It has the agent `alice`."""
    folder.mkdir(mode=0o711)
    subprocess.run(["cp", "--archive", made_before, folder / ".muniment"], check=True)
    arguments = ("--dev", "--data-dir", ".muniment", "--listen", "127.0.0.1:0", *options)
    server = Server(folder, *arguments, environment=environment_in(folder, **environment))
    try:
        server.read_to_the_last_line()
        line_of(run(folder, "agent", "create", "alice"))
        yield server
    finally:
        server.end()


@pytest.fixture(scope="package")
def dev(root_folder: Path, made_before: Path) -> Iterator[Server]:
    """A server in development, for all tests that do not break it."""
    with in_development(root_folder / "dev", made_before, "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def pair_of_workers(root_folder: Path, made_before: Path) -> Iterator[Server]:
    """The same with two workers and no embedder, for the tests of a module, which may kill a worker."""
    folder = root_folder / f"module{next(_numbers)}"
    with in_development(folder, made_before, "--workers", "2", PYTHONPATH=str(WORDS_ALONE)) as server:
        yield server


@pytest.fixture
def muniment(dev: Server) -> Callable[..., Done]:
    """Run a command in the folder of the server in development."""
    return lambda *arguments, **options: run(dev.folder, *arguments, **options)


@pytest.fixture
def agent(muniment: Callable[..., Done]) -> str:
    """An agent of one test."""
    return str(objects(muniment("agent", "create", f"agent-{next(_numbers)}", "--json"))[0]["agent_id"])
