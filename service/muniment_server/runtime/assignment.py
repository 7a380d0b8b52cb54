"""The message in which the supervisor tells a child process what to do.

A module of its own, so that the supervisor need not import what its children import.

After an upgrade, a reload starts children with newer code than the supervisor's. So a field that is added needs a
default, and one that a child does not know is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from muniment_server.postgres.disk import Disk
from muniment_server.telemetry.logs import LogFormat

READY = "ready"
"""The line that a worker prints once it serves, and the embedder once it has loaded its model."""
LEAVE = "leave"
"""The line with which the supervisor asks a worker to exit when its callers have left."""


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
    """The reranker at an address: see `RerankerConfig`. None if there is none."""
    database_directory: str | None = None
    """Where the embedded Postgres keeps its data. None if it is not embedded."""
    log_format: LogFormat = "text"
    access_log: bool = False
    """Whether every call has a line in the log."""
    measures: bool = False
    """Whether metrics are served."""
    replaces: bool = False
    """Whether a worker that serves will be replaced. Then this one exits if it cannot open its gate."""

    def disk(self) -> Disk:
        """The disk of the database."""
        return Disk(Path(self.database_directory) if self.database_directory else None)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Assignment:
        """The assignment that a supervisor, perhaps of another version, wrote as *line*."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(line).items() if name in known})
