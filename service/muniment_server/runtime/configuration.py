"""The configuration of a server. Only this module and the command line's options read the environment."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.configuration import RemoteConfig, RerankerConfig
from muniment_server.postgres import roles
from muniment_server.telemetry.logs import LogFormat
from muniment_server.transport.admission.pools import Limits

_DEFAULT_CONNECTIONS = 90
"""Fits into the 100 that Postgres accepts by default."""
_FEWEST_PER_WORKER = 14
"""For each worker: one connection for each role, and one more each for the eraser, the sealer, and the control role,
which every call needs."""


class ConfigError(ValueError):
    """The configuration is invalid. The text says what to change."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. With *client_ca*, callers must present a certificate that it has signed (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class DatabaseConfig:
    """Which database to use: the one at *url*, or an embedded one in *data_dir*."""

    data_dir: Path
    url: str | None = None
    passfile: Path | None = None
    state_dir: Path | None = None
    """Where the highest epoch of the database is kept. If None, it is kept in *data_dir* for an embedded database, and
    nowhere for any other. Of several servers, each has a directory of its name there."""
    servers_file: Path | None = None
    """The file that names several servers: see `runtime.servers_file`. Then there is no *url*."""

    @property
    def is_embedded(self) -> bool:
        """Whether the database is the one in *data_dir*."""
        return self.url is None and self.servers_file is None

    @property
    def epoch_directory(self) -> Path | None:
        """The directory of the highest epoch: see `postgres.epochs`. None if the epoch does not survive a restart."""
        if self.state_dir is None and self.is_embedded:
            return self.data_dir / "state"
        return self.state_dir


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Where metrics are served: at `unix:PATH`, to the account that runs the server, or at HOST:PORT."""

    listen: str
    token_file: Path | None = None
    """Has what readers must send as a bearer token. Required unless *listen* is a path."""
    directory: Path | None = None
    """Where the processes of the server keep their values. The supervisor chooses it."""

    def __post_init__(self) -> None:
        if self.listen.startswith("unix:"):
            return
        split_address(self.listen)
        if self.token_file is None:
            raise ConfigError(
                "metrics are for operators only, and any program can reach a port: give --metrics-token-file FILE, "
                "or serve them at --metrics unix:PATH"
            )


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of one server."""

    database: DatabaseConfig
    listen: str = "127.0.0.1:50051"
    workers: int = 0
    """The number of processes; 0 is one for each core. A Unix socket always has one: a second bind would replace it."""
    threads: int = 4
    """How many calls a worker runs at the same time."""
    max_in_flight: int = Limits().max_in_flight
    """How many calls a worker takes on at once. One session gets a twelfth of them, one agent at one level a sixth."""
    max_connections: int = 0
    """How many connections all processes may open together; 0 is 90, or what many workers need at least."""
    max_worker_memory: int = 512
    """MiB. A worker that has more is replaced, and one that has four times as much is killed. 0: no limit."""
    drain_seconds: float = 20.0
    tls: Tls | None = None
    development: bool = False
    audit_reads_from: Classification = field(default=Classification.CONFIDENTIAL)
    log_format: LogFormat = "text"
    access_log: bool = False
    """Whether every call has a line in the log, not only refusals."""
    http: str | None = None
    """Where the HTTP gateway listens, as HOST:PORT. None if there is none."""
    identities: bool = False
    """Whether hosts may call as identities, by the tokens of issuers that operators have named."""
    metrics: MetricsConfig | None = None
    remote: RemoteConfig | None = None
    """The model at an address that computes embeddings beside the built-in one."""
    reranker: RerankerConfig | None = None
    """The model at an address that orders the best matches of a search."""
    traces: bool = False
    """Whether workers export traces, as the standard variables of OpenTelemetry say."""

    def __post_init__(self) -> None:
        if self.traces:
            _check_tracing()
        if self.metrics is not None and self.tls is None and not is_private(self.metrics.listen):
            raise ConfigError(
                f"refusing to serve metrics in the clear on {self.metrics.listen}: give --tls-cert and --tls-key, "
                "or use 127.0.0.1 or unix:PATH"
            )
        if self.identities and not all(map(importlib.util.find_spec, ("jwt", "cryptography"))):
            raise ConfigError(
                "--identities needs PyJWT, which comes with the extra `identity`: in a checkout of Muniment, pip "
                "install -e '.[identity]'; from the packages of `make dist`, pip install "
                f"'dist/python/muniment_server-{version('muniment-server')}-py3-none-any.whl[identity]'"
            )
        if self.http is not None:
            _check_http(self.http, has_tls=self.tls is not None)
        if self.audit_reads_from > Classification.CONFIDENTIAL:
            raise ConfigError(
                "reads at CONFIDENTIAL and above are always audited: choose CONFIDENTIAL or a lower level"
            )
        if 0 < self.max_connections < self._fewest_connections:
            raise ConfigError(
                f"{self.worker_count} workers need at least {self._fewest_connections} connections: "
                "raise --max-connections, or start fewer --workers"
            )
        if self.tls is None and not is_private(self.listen):
            raise ConfigError(
                f"refusing to listen in the clear on {self.listen}: give --tls-cert and --tls-key, "
                "or listen on 127.0.0.1 or unix:PATH"
            )

    @property
    def connections(self) -> int:
        """How many connections all processes may open together."""
        return self.worker_count * sum(self.worker_connections.values()) + self._beside_workers

    @property
    def worker_connections(self) -> Mapping[str, int]:
        """How many connections one worker may open as each role."""
        most = self.max_connections or max(_DEFAULT_CONNECTIONS, self._fewest_connections)
        return self.limits.connections((most - self._beside_workers) // self.worker_count)

    @property
    def _fewest_connections(self) -> int:
        return self.worker_count * _FEWEST_PER_WORKER + self._beside_workers

    @property
    def _beside_workers(self) -> int:
        """The connections of the embedder, of the metrics and of what refreshes identities.

        The embedder has two for each label, one for each model at each of its levels, and one to ask which
        agents have been deleted if there is a model at an address.
        """
        remote = len(self.remote.levels) + 1 if self.remote else 0
        return 2 * len(roles.LABELS) + remote + (self.metrics is not None) + self.identities

    @property
    def limits(self) -> Limits:
        """How much one worker takes on."""
        return Limits(threads=self.threads, max_in_flight=self.max_in_flight)

    @property
    def worker_count(self) -> int:
        """The number of worker processes."""
        if self.listen.startswith("unix:"):
            return 1
        return self.workers or _cores()


def _cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_http(listen: str, *, has_tls: bool) -> None:
    """Check that the server can have an HTTP gateway at *listen*. Raises ConfigError."""
    if has_tls or not is_private(listen):
        raise ConfigError(
            f"--http {listen} is in the clear, on this machine alone: with TLS, or for other machines, run "
            "`muniment http` beside the server"
        )
    if listen.startswith("unix:") or split_address(listen)[1] == 0:
        raise ConfigError("--http needs a host and a port, such as 127.0.0.1:8080")


def _check_tracing() -> None:
    """Check that workers can export traces. Raises ConfigError."""
    if not _exporter_is_installed():
        raise ConfigError(
            "--traces needs OpenTelemetry, which comes with the extra `tracing`: in a checkout of Muniment, pip "
            "install ./clients/python '.[semantic,tracing]'; from the packages of `make dist`, pip install "
            f"'dist/python/muniment_server-{version('muniment-server')}-py3-none-any.whl[semantic,tracing]'"
        )
    variables = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next(filter(None, map(os.environ.get, variables)), "grpc")
    if protocol != "grpc":
        raise ConfigError(
            f"traces are exported by gRPC, not {protocol}: unset {' and '.join(variables)}, and name the collector's "
            "port for gRPC, usually 4317"
        )


def _exporter_is_installed() -> bool:
    """Whether the extra `tracing` is installed. Does not load it."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.grpc") is not None
    except ModuleNotFoundError:
        return False


def child_environment(metrics_directory: Path | None = None, *, reports_handshakes: bool = False) -> dict[str, str]:
    """The environment of a child process. gRPC logs nothing unless *reports_handshakes*: see `child_log`."""
    environment = {**os.environ, "GRPC_VERBOSITY": "INFO" if reports_handshakes else "NONE"}
    if metrics_directory is not None:
        environment["PROMETHEUS_MULTIPROC_DIR"] = str(metrics_directory)
    return environment


def split_address(listen: str) -> tuple[str, int]:
    """The host and port of `HOST:PORT`. Raises ConfigError."""
    host, separator, port = listen.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{listen} is not an address: give HOST:PORT or unix:PATH")
    return host.strip("[]"), int(port)


def is_private(listen: str) -> bool:
    """Whether only this machine can reach *listen*."""
    if listen.startswith("unix:"):
        return True
    host, _ = split_address(listen)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def nearest_data_dir() -> Path:
    """`.muniment` in the current directory, which `make run` uses, if it exists; otherwise the default."""
    here = Path(".muniment")
    return here if here.is_dir() else default_data_dir()


def default_data_dir() -> Path:
    """The default directory of the embedded database: in the user's data home."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "muniment"
