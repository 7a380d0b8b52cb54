"""A `muniment http` process, and calls by HTTP."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from tests.support.commands import COMMAND, wait_until
from tests.support.ports import free_port

JSON = "application/json"


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """A gateway to the server at *server*, while the block runs."""

    def __init__(self, server: str, *options: str, before: str = "") -> None:
        """*before*: statements that its process runs first."""
        self.port = free_port()
        program = [sys.executable, "-c", f"{before}from muniment.cli.root import main; main()"] if before else COMMAND
        self._command = [*program, "http", "--listen", f"127.0.0.1:{self.port}", "--server", server, *options]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        wait_until(self._listens, "the gateway listens")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()

    def _listens(self) -> bool:
        try:
            return self.send("GET", "/").status == 404
        except ConnectionRefusedError:
            return False

    def send(
        self, method: str, path: str, body: bytes | str | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send one request, over a connection of its own."""
        return send(self.port, method, path, body, headers)

    def call(self, method: str, credential: str, request: object = None, **headers: str) -> Response:
        """Call a method, such as `MemoryService/GetMemory`, with *request* as JSON."""
        return call(self.port, method, credential, request, **headers)


def send(
    port: int, method: str, path: str, body: bytes | str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Send one request to a gateway at *port*."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return Response(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def call(port: int, method: str, credential: str, request: object = None, **headers: str) -> Response:
    """Call a method by the gateway at *port*."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    known = {"authorization": f"Bearer {credential}", "content-type": JSON}
    return send(port, "POST", f"/muniment.v1.{method}", json.dumps(request or {}), known | named)
