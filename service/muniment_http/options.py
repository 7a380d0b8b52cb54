"""The options of the gateway."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from muniment._channel import TLS
from muniment.cli.failures import Failure


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


def require_extra(extra: str = "http", needs: str = "granian") -> None:
    """Raise Failure if the package *needs* of the extra *extra* is not installed."""
    if importlib.util.find_spec(needs) is None:
        raise Failure(
            f"{'HTTP' if extra == 'http' else 'this command'} needs the extra `{extra}`",
            f"in a checkout of Muniment: pip install -e '.[{extra}]'; from the packages of `make dist`: "
            f"pip install 'dist/python/muniment_server-{version('muniment-server')}-py3-none-any.whl[{extra}]'",
        )
