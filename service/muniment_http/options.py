"""The options of the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """Where to listen, and which server to forward calls to."""

    host: str
    port: int
    server: str
    """The address of the server: `host:port` or `unix:/path`."""
    ca: Path | None = None
    """The authority of the server's certificate. None if it is called without TLS."""
    certificate: Path | None = None
    key: Path | None = None
    """The gateway's own certificate and key. None if it is called without TLS."""
    origins: Sequence[str] = ()
    """The origins whose pages may call, such as `https://app.example`."""
