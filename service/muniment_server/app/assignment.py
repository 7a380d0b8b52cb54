"""What a supervisor tells its workers. Apart from them, so that the supervisor need not load what they serve with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

READY = "ready"
"""What a worker says once it serves."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one worker is told."""

    conninfo: str
    listen: str
    threads: int
    most_in_flight: int
    connections: int
    """How many connections all workers may open together."""
    drain_seconds: float
    development: bool
    audit_reads_from: int
    tls: Mapping[str, str] | None

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))
