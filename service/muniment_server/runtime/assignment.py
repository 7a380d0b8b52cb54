"""The message in which the supervisor tells a child process what to do.

A module of its own, so that the supervisor need not import what its children import.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

READY = "ready"
"""The line that a worker prints once it serves."""


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

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))
