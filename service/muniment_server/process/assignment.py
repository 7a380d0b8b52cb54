"""The message in which the supervisor tells a child process what to do.

A module of its own, so that the supervisor need not import what its children import.

After an upgrade, a child that is started again has newer code than the supervisor. So a field that is added needs a
default, and one that a child does not know is ignored.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path

from psycopg import conninfo as libpq

from muniment_server.domain.ids import TenantNumber
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.epochs import EpochGuard
from muniment_server.postgres.placement import ONLY, Databases, Placement
from muniment_server.postgres.pool import Database
from muniment_server.telemetry.logs import LogFormat

READY = "ready"
"""The line that a worker prints once it serves, and the embedder once it has loaded its model."""
DUMP = signal.SIGQUIT
"""The signal at which a process writes where its threads stand, if its interpreter works."""
DUMP_WITHOUT_INTERPRETER = signal.SIGUSR1
"""The signal at which it does so although a thread keeps the interpreter. If the interpreter works, it may crash."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker or the embedder needs to know."""

    conninfo: str
    listen: str
    threads: int
    max_in_flight: int
    connections: int
    """How many connections all processes may open together."""
    worker_connections: Mapping[str, int]
    """How many connections one worker may open as each role."""
    application_name: str
    """The name of the server's connections."""
    drain_seconds: float
    development: bool
    audit_reads_from: int
    tls: Mapping[str, str] | None
    epochs: str
    """The directory of the highest epoch of the database."""
    embedder: str | None
    """The path of the embedder's Unix socket. None if there is no embedder."""
    remote: Mapping[str, object] | None = None
    """The model at an address: see `RemoteConfig`. None if there is none."""
    reranker: Mapping[str, object] | None = None
    """The reranker at an address: see `RerankerConfig`. None without one."""
    http: str | None = None
    """The address of the HTTP gateway. None without one."""
    identities: str | None = None
    """The file of identities. None if the server accepts none."""
    database_directory: str | None = None
    """Where the embedded Postgres keeps its data. None if it is not embedded."""
    log_format: LogFormat = "text"
    access_log: bool = False
    """Whether every call has a line in the log."""
    measures: bool = False
    """Whether metrics are served."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """The conninfo of each server, if a file names them. Otherwise *conninfo* is that of the only one."""
    tenants: Mapping[str, str] = field(default_factory=dict)
    """The name of the server of each tenant that is not at the first, by the tenant's number."""

    def disk(self) -> Disk:
        """The disk of the database."""
        return Disk(Path(self.database_directory) if self.database_directory else None)

    def placement(self) -> Placement:
        """Which server has which tenant."""
        tenants = {TenantNumber(int(number)): name for number, name in self.tenants.items()}
        return Placement(self.servers or {ONLY: self.conninfo}, tenants)

    def databases(
        self,
        pool_sizes: Mapping[str, int],
        *,
        application_name: str | None = None,
    ) -> Databases:
        """The databases of all servers, with pools of their own."""
        placement = self.placement()
        named = {} if application_name is None else {"application_name": application_name}
        return Databases(
            placement,
            {
                name: Database(
                    partial(_login, conninfo, named),
                    pool_sizes=pool_sizes,
                    epochs=EpochGuard(epoch_directory(Path(self.epochs), name)),
                )
                for name, conninfo in placement.servers.items()
            },
        )

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Assignment:
        """The assignment that a supervisor, perhaps of another version, wrote as *line*."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in json.loads(line).items() if name in known})


def epoch_directory(directory: Path, server: str) -> Path:
    """Where the highest epoch of *server* is kept: in a directory of its own, if servers have names."""
    return directory / server if server else directory


def _login(conninfo: str, named: Mapping[str, str], role: str) -> str:
    return libpq.make_conninfo(conninfo, user=role, **named)
