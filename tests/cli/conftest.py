"""The command as people run it: real processes, in folders of their own."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

Done = subprocess.CompletedProcess[str]
SYSTEM_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_COMMAND = [sys.executable, "-m", "muniment_server.cli"]
_SECONDS = 120
"""A sign that something hangs, also where the disk is slow and other tests run beside."""


class Server:
    """A `muniment serve` that serves."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.errors = folder / "stderr"
        self.said = ""
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*_COMMAND, "serve", *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._read_until("Muniment serves on")
        found = re.search(r"serves on (\S+) with", self.said)
        assert found is not None
        self.address = found[1]

    def read_to_the_last_line(self) -> str:
        """What it says in development, down to the last thing to try."""
        self._read_until("grpcurl")
        return self.said

    @property
    def workers(self) -> set[int]:
        """The pids of the workers that run."""
        return {pid for pid, command in self.children().items() if "muniment_server.runtime.worker" in command}

    @property
    def postgres(self) -> int:
        """The pid of the database."""
        return next(pid for pid, command in self.children().items() if "postgres" in command.split("\0")[0])

    def children(self) -> dict[int, str]:
        """The command lines of the processes it started, by pid."""
        return children_of(self.process.pid)

    def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end: {self.errors.read_text()}") from None

    def end(self) -> None:
        """End it, whatever it is doing."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read_until(self, words: str) -> None:
        assert self.process.stdout is not None
        while words not in self.said:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(self.errors.read_text())
            self.said += line


def children_of(parent: int) -> dict[int, str]:
    """The command lines of the processes that *parent* started, by pid."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal() and _parent(entry) == parent]
    return {pid: command for pid in pids if (command := _command_line(pid))}


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Return when *condition* holds; fail when it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def environment_in(folder: Path, **extra: str) -> dict[str, str]:
    """An environment that names no server and has its data home in *folder*."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "share"), **extra}


def run(folder: Path, *arguments: str, given: str | bytes = b"", **environment: str) -> Done:
    """Run one command to its end. What it says is decoded, byte for byte."""
    raw = subprocess.run(
        [*_COMMAND, *arguments],
        cwd=folder,
        env=environment_in(folder, **environment),
        input=given.encode() if isinstance(given, str) else given,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    return Done(raw.args, raw.returncode, raw.stdout.decode(), raw.stderr.decode())


def on_a_terminal(folder: Path, *arguments: str, columns: int = 200) -> tuple[int, str]:
    """The exit status of a command on a terminal, and what it shows there."""
    shown, end = pty.openpty()
    environment = environment_in(folder, TERM="xterm-256color", COLUMNS=str(columns))
    command = [*_COMMAND, *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=end, stdout=end, stderr=end) as process:
        os.close(end)
        said = b""
        while True:
            try:
                said += os.read(shown, 65536)
            except OSError:  # the other end is closed
                break
    os.close(shown)
    return process.returncode, said.decode()


def objects(done: Done) -> list[dict[str, Any]]:
    """What a successful command with --json said."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def line_of(done: Done) -> str:
    """The one line that a successful command said."""
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="package")
def root_folder() -> Iterator[Path]:
    """A folder that any account may pass through, unlike those of pytest: root's Postgres runs as another."""
    with tempfile.TemporaryDirectory(prefix="muniment-cli-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


_numbers = itertools.count()


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
    done = run(root_folder, "migrate", "--data-dir", str(data_dir))
    assert done.returncode == 0, done.stderr
    return data_dir


@pytest.fixture
def data_dir(folder: Path, made_before: Path) -> Path:
    """A data directory of one test, ready to be served."""
    subprocess.run(["cp", "--archive", made_before, folder / ".muniment"], check=True)
    return folder / ".muniment"


@pytest.fixture
def serving(folder: Path) -> Iterator[Callable[..., Server]]:
    """Start servers in the test's folder; they are ended with the test."""
    made: list[Server] = []

    def serve(*arguments: str, **environment: str) -> Server:
        listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
        made.append(Server(folder, *listen, *arguments, environment=environment_in(folder, **environment)))
        return made[-1]

    yield serve
    for server in made:
        server.end()


@pytest.fixture(scope="package")
def dev(root_folder: Path, made_before: Path) -> Iterator[Server]:
    """A server in development, for all tests that do not break it; its folder has the agent `alice`."""
    folder = root_folder / "dev"
    folder.mkdir(mode=0o711)
    subprocess.run(["cp", "--archive", made_before, folder / ".muniment"], check=True)
    arguments = ("--dev", "--data-dir", ".muniment", "--listen", "127.0.0.1:0")
    server = Server(folder, *arguments, environment=environment_in(folder))
    try:
        server.read_to_the_last_line()
        line_of(run(folder, "agent", "create", "alice"))
        yield server
    finally:
        server.end()


@pytest.fixture
def muniment(dev: Server) -> Callable[..., Done]:
    """Run a command in the folder of the server in development."""
    return lambda *arguments, **options: run(dev.folder, *arguments, **options)


@pytest.fixture
def agent(muniment: Callable[..., Done]) -> str:
    """An agent of one test."""
    return str(objects(muniment("agent", "create", f"agent-{next(_numbers)}", "--json"))[0]["agent_id"])


def at(agent: str, level: str) -> tuple[str, ...]:
    """The options that open a session of *agent* at *level* for one command."""
    return ("--agent", agent, "--taint", level)
