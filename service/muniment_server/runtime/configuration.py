"""What a server is told. The environment is read here and by the options of the command line, nowhere else."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from muniment_server.domain.classification import Classification
from muniment_server.postgres import roles

LONG_THREADS = 2
"""Threads of a worker that run searches and render prompts, beside those that run all other calls."""
STREAM_THREADS = 1
"""Threads of a worker that take streams. One more, and two workers would not fit a Postgres with 100 connections."""


class ConfigError(ValueError):
    """The configuration cannot be. The text says what to change."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM. With *client_ca*, callers must show a certificate that it signed (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class DatabaseConfig:
    """Which database: one of our own in *data_dir*, or the one that *url* names."""

    data_dir: Path
    url: str | None = None
    passfile: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server."""

    database: DatabaseConfig
    listen: str = "127.0.0.1:50051"
    workers: int = 0
    """Processes. 0: one for each core; on a unix socket always one, since a second bind takes the path over."""
    threads: int = 4
    """Calls that one worker runs at once."""
    most_in_flight: int = 256
    """Calls that one worker runs or queues; more are refused at once."""
    drain_seconds: float = 20.0
    tls: Tls | None = None
    development: bool = False
    audit_reads_from: Classification = field(default=Classification.CONFIDENTIAL)

    def __post_init__(self) -> None:
        if self.audit_reads_from > Classification.CONFIDENTIAL:
            raise ConfigError("reads at CONFIDENTIAL and above are always audited: this can only be widened")
        if self.tls is None and not is_private(self.listen):
            raise ConfigError(
                f"refusing to listen in the clear on {self.listen}: give --tls-cert and --tls-key, "
                "or listen on 127.0.0.1 or unix:PATH"
            )

    @property
    def connections(self) -> int:
        """How many connections all workers may open together, and the embedder."""
        of_workers = self.worker_count * (self.threads + LONG_THREADS + STREAM_THREADS) * len(roles.SERVING)
        return of_workers + len(roles.LEVELS)

    @property
    def worker_count(self) -> int:
        """How many worker processes there are."""
        if self.listen.startswith("unix:"):
            return 1
        return self.workers or _cores()


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def child_environment() -> dict[str, str]:
    """The environment of a worker or the embedder: ours, without a line of gRPC's own for each bad handshake."""
    return {**os.environ, "GRPC_VERBOSITY": "NONE"}


def split_address(listen: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`. Raises ConfigError."""
    host, separator, port = listen.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{listen} is not an address: give HOST:PORT or unix:PATH")
    return host.strip("[]"), int(port)


def is_private(listen: str) -> bool:
    """Whether what is said on *listen* stays on this machine."""
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
    """The folder that `make run` uses, if it is here; otherwise that of the account."""
    here = Path(".muniment")
    return here if here.is_dir() else default_data_dir()


def default_data_dir() -> Path:
    """Where the database of our own is kept: in the user's data home."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "muniment"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls which server, as far as the environment says."""

    address: str | None
    host_key: str | None = field(repr=False)
    token: str | None = field(repr=False)


def caller() -> Caller:
    """The caller that MUNIMENT_ADDRESS, MUNIMENT_HOST_KEY and MUNIMENT_TOKEN name. Empty is absent."""
    names = ("MUNIMENT_ADDRESS", "MUNIMENT_HOST_KEY", "MUNIMENT_TOKEN")
    address, host_key, token = (os.environ.get(name, "").strip() or None for name in names)
    return Caller(address, host_key, token)
