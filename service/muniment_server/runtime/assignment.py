"""What a supervisor tells its workers and the embedder. Apart from them: it need not load what they serve with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

READY = "ready"
"""What a worker says once it serves."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one worker is told, and the embedder."""

    conninfo: str
    listen: str
    threads: int
    most_in_flight: int
    connections: int
    """How many connections all may open together."""
    drain_seconds: float
    development: bool
    audit_reads_from: int
    tls: Mapping[str, str] | None
    embedder: str | None
    """Where the embedder is asked: the path of a unix socket. None: there is none."""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))
