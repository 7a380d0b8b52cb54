"""A real server, `muniment serve --dev`, with two workers and a durable Postgres; and how to hit its parts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from muniment_server.embedded_postgres import conninfo_of_running
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.runtime.databases import CLUSTER, SUPERUSER, cluster_directory
from tests.support.commands import WORDS_ALONE
from tests.support.ports import free_port

WORKERS = 2
_PROC = Path("/proc")
_LISTENS = "0A"
_SERVES = "Muniment serves"
_SLOWEST_START = 60.0
_LOG_SHOWN = 10_000


class ServerProcess:
    """One server on one data directory and one port, started as often as it is killed."""

    def __init__(self, *options: str, code: Path | None = None, words_alone: bool = False, disk_mib: int = 0) -> None:
        """*code* is the directory of another `muniment_server` to run. With *words_alone*, it has no embedder.

        The database has a disk of *disk_mib*, if given: in memory, and mounted for the server's processes only. That
        needs root.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="muniment-faults-"))
        self._folder.chmod(0o711)  # root's Postgres runs as another account, which must come through
        self._options = options
        self._disk_mib = disk_mib
        paths = [str(path) for path in (code, WORDS_ALONE if words_alone else None) if path]
        self._environment = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[str] | None = None

    @property
    def host_key(self) -> str:
        """The host key of development mode."""
        return str(json.loads((self.data_dir / "development.json").read_text())["host_key"])

    @property
    def log(self) -> str:
        """What all its starts have logged."""
        return (self._folder / "log").read_text()

    def start(self) -> None:
        """Start, and return when it says that it serves. The workers of one just killed may hold the port a moment."""
        wait_until(self._starts, "the server starts", seconds=_SLOWEST_START)

    def kill(self) -> None:
        """Kill the supervisor with SIGKILL, and with it the whole server."""
        os.kill(self._running.pid, signal.SIGKILL)
        self._collect()

    def terminate(self) -> int:
        """Ask it to end, with SIGTERM; its exit status."""
        self.ask_to_end()
        return self.wait_for_end()

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor."""
        self._running.send_signal(number)

    def wait_for_end(self) -> int:
        """Its exit status, once it has ended."""
        return self._collect()

    def destroy(self) -> None:
        """End it and remove all that it kept."""
        if self._process is not None:
            self.terminate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def workers(self) -> list[int]:
        """The worker processes."""
        return [pid for pid in _children(self._running.pid) if b"muniment_server.runtime.worker" in _command(pid)]

    def listening(self) -> int:
        """How many sockets listen on its port: one for each worker."""
        port = int(self.address.rpartition(":")[2])
        rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
        return sum(row[1].endswith(f":{port:04X}") and row[3] == _LISTENS for row in rows)

    def embedders(self) -> list[int]:
        """The process that makes vectors, where it is installed."""
        return [pid for pid in _children(self._running.pid) if b"muniment_server.embedder.main" in _command(pid)]

    def postmaster(self) -> int | None:
        """The parent of all Postgres processes; None while it does not run."""
        return next((pid for pid in _children(self._running.pid) if _name(pid) == "postgres"), None)

    def backends(self) -> list[int]:
        """The Postgres processes that serve a level's connection."""
        postmaster = self.postmaster()
        return [pid for pid in _children(postmaster or 0) if b": muniment_" in _command(pid)]

    def postgres(self) -> list[int]:
        """Every Postgres process."""
        postmaster = self.postmaster()
        return [postmaster, *_children(postmaster)] if postmaster else []

    def database_disk(self) -> Path:
        """The database's directory, as the server sees it."""
        return Path(f"/proc/{self._running.pid}/root") / cluster_directory(self.data_dir).relative_to("/")

    def as_owner(self) -> psycopg.Connection[Any]:
        """A connection to its database that may look at everything."""
        admin = conninfo_of_running(cluster_directory(self.data_dir), user=SUPERUSER)
        assert admin is not None
        return psycopg.connect(operator_conninfo(admin), autocommit=True, row_factory=namedtuple_row)

    @property
    def data_dir(self) -> Path:
        return self._folder / "data"

    @property
    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def _starts(self) -> bool:
        command = [
            *(sys.executable, "-m", "muniment.cli", "serve", "--dev", "--workers", str(WORKERS)),
            *("--data-dir", str(self.data_dir), "--listen", self.address, *self._options),
        ]
        self.data_dir.mkdir(mode=0o711, exist_ok=True)
        if self._disk_mib:
            command = [*_with_disk(self.data_dir / CLUSTER, self._disk_mib), *command]
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                command, env={**os.environ, **self._environment}, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        if _SERVES in self._process.stdout.readline():
            return True
        self._collect()
        return False

    def _collect(self) -> int:
        running = self._running
        running.communicate()
        self._process = None
        return running.returncode


@contextmanager
def running(server: ServerProcess) -> Iterator[ServerProcess]:
    """Start *server* for the block. If the test fails, pytest shows the end of its log."""
    try:
        server.start()
        yield server
    finally:
        print(server.log[-_LOG_SHOWN:])
        server.destroy()


def may_mount() -> bool:
    """Whether this user may give a process a disk of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*_with_disk(Path(folder), 1), "true"], capture_output=True, check=False).returncode == 0


def _with_disk(directory: Path, mebibytes: int) -> list[str]:
    """What to put in front of a command, so that *directory* is a disk of its own."""
    directory.mkdir(mode=0o711, exist_ok=True)
    mount = f'mount -t tmpfs -o size={mebibytes}m,mode=0711 tmpfs {directory} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mount, "sh"]


def wait_until(condition: Callable[[], object], what: str, *, seconds: float = 60.0) -> float:
    """Wait for *condition*; how many seconds it took."""
    begun = asked = time.monotonic()
    while not condition():
        assert time.monotonic() < begun + seconds, f"not within {seconds} s: {what}"
        time.sleep(max(0.005, time.monotonic() - asked))
        asked = time.monotonic()
    return time.monotonic() - begun


def is_running(pid: int) -> bool:
    """Whether process *pid* has not ended; a zombie has."""
    return _parent(pid) != -1


def _children(parent: int) -> list[int]:
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir(_PROC))) if _parent(pid) == parent]


def _parent(pid: int) -> int:
    """Its parent; -1 when it has ended, as a zombie too."""
    _, _, rest = _read(pid, "stat").rpartition(b") ")
    state, *numbers = rest.split() or [b"X"]
    return -1 if state in (b"X", b"Z") else int(numbers[0])


def _name(pid: int) -> str:
    return _read(pid, "comm").decode().strip()


def _command(pid: int) -> bytes:
    return _read(pid, "cmdline").replace(b"\0", b" ")


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
