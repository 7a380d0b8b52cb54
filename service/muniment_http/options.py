"""The options of the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muniment._channel import TLS


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

    @property
    def tls(self) -> TLS | bool:
        """How the server is called."""
        return TLS(ca=self.ca) if self.ca else False
