"""The command `muniment`, for tests: in this process, as a process of its own, and on a terminal.

Each test works in a folder of its own, in an environment that names no server.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner

from muniment.cli.root import main

Done = subprocess.CompletedProcess[str]
"""How a command ended, and its output, decoded byte for byte."""
SYSTEM_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
COMMAND = [sys.executable, "-m", "muniment.cli"]
WORDS_ALONE = Path(__file__).with_name("words_alone")
"""As PYTHONPATH, it makes a server find no embedder."""
_SECONDS = 120
"""After that a command hangs, even where the disk is slow and other tests run beside it."""


class Server:
    """A `muniment serve` that serves."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str],
        command: Sequence[str] = COMMAND,
        on_a_terminal: bool = False,
    ) -> None:
        self.folder = folder
        self.errors = folder / "stderr"
        self.output = ""
        shown, end = pty.openpty() if on_a_terminal else os.pipe()
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, "serve", *arguments],
                cwd=folder,
                env={**environment, "TERM": "dumb"} if on_a_terminal else environment,
                stdin=subprocess.DEVNULL,
                stdout=end,
                stderr=errors,
                text=True,
            )
        os.close(end)
        self.process.stdout = os.fdopen(shown)
        self._read_until("Muniment serves on")
        found = re.search(r"serves on (\S+) with", self.output)
        assert found is not None
        self.address = found[1]

    def read_to_the_last_line(self) -> str:
        """What it says in development, down to the last thing to try."""
        self._read_until("grpcurl -")
        return self.output

    @property
    def workers(self) -> set[int]:
        """The pids of the workers that run."""
        return {pid for pid, command in self.children().items() if "muniment_server.runtime.worker" in command}

    @property
    def postgres(self) -> int:
        """The pid of the database, or 0 while there is none."""
        return next((pid for pid, command in self.children().items() if "postgres" in command.split("\0")[0]), 0)

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
        while words not in self.output:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(self.errors.read_text())
            self.output += line


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


def wait_until(condition: Callable[[], object], what: str, seconds: float = 90) -> None:
    """Return when *condition* holds; fail when it never does. It sleeps twice as long as the condition took."""
    end = time.monotonic() + seconds
    asked = time.monotonic()
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(max(0.02, 2 * (time.monotonic() - asked)))
        asked = time.monotonic()


def environment_in(folder: Path, **extra: str) -> dict[str, str]:
    """An environment that names no server and has its data home in *folder*."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "share"), **extra}


def run(folder: Path, *arguments: str, given: str | bytes = b"", **environment: str) -> Done:
    """Run one command to its end, in this process: without the third of a second that imports take."""
    with chdir(folder), patch.dict(os.environ, environment_in(folder, **environment), clear=True):
        result = CliRunner().invoke(main, arguments, input=given, catch_exceptions=False)
    return Done(arguments, result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())


def run_process(folder: Path, *arguments: str, given: str | bytes = b"", **environment: str) -> Done:
    """Run one command to its end as people do, in a process of its own."""
    raw = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment_in(folder, **environment),
        input=given.encode() if isinstance(given, str) else given,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    return Done(raw.args, raw.returncode, raw.stdout.decode(), raw.stderr.decode())


def on_a_terminal(
    folder: Path, *arguments: str, columns: int = 200, answer: str = "", **variables: str
) -> tuple[int, str]:
    """The exit status of a command on a terminal, where *answer* is typed, and what it shows there."""
    shown, end = pty.openpty()
    os.write(shown, answer.encode())
    environment = environment_in(folder, TERM="xterm-256color", COLUMNS=str(columns), **variables)
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=end, stdout=end, stderr=end) as process:
        os.close(end)
        output = b""
        while True:
            try:
                output += os.read(shown, 65536)
            except OSError:  # the other end is closed
                break
    os.close(shown)
    return process.returncode, output.decode()


def objects(done: Done) -> list[dict[str, Any]]:
    """The output of a successful command with --json."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def line_of(done: Done) -> str:
    """The one line of output of a successful command."""
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def at(agent: str, level: str) -> tuple[str, ...]:
    """The options that open a session of *agent* at *level* for one command."""
    return ("--agent", agent, "--taint", level)
