"""What the door needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """Where to listen, and which server to call."""

    host: str
    port: int
    server: str
    """The address of the server: `host:port` or `unix:/path`."""
    ca: Path | None = None
    """The authority that has signed the certificate of the server. None: it has none, and is on this machine."""
    certificate: Path | None = None
    key: Path | None = None
    """Of the door itself. None: it speaks HTTP in the clear."""
    origins: Sequence[str] = ()
    """The pages that may call, such as `https://app.example`."""
