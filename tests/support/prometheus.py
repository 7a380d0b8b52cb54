"""Reads the metrics of a running server."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import closing
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families


class _AtPath(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def connection(address: str, tls: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
    """A connection to the endpoint at `unix:PATH` or HOST:PORT."""
    if address.startswith("unix:"):
        return _AtPath(Path(address.removeprefix("unix:")))
    if tls is not None:
        return http.client.HTTPSConnection(address, timeout=60, context=tls)
    return http.client.HTTPConnection(address, timeout=60)


def asked(
    address: str, token: str | None = None, path: str = "/metrics", tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    """The status of the answer, and its text."""
    with closing(connection(address, tls)) as reader:
        reader.request("GET", path, headers={"authorization": f"Bearer {token}"} if token else {})
        answer = reader.getresponse()
        return answer.status, answer.read().decode()


def samples(address: str, token: str | None = None) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, by its name and labels."""
    status, text = asked(address, token)
    assert status == 200, text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def sample(address: str, name: str, /, token: str | None = None, **labels: str) -> float | None:
    """One sample, or None if there is none."""
    return samples(address, token).get((name, frozenset(labels.items())))
