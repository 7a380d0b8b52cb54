"""An MCP server over HTTP in a process of its own, and requests to it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from muniment.mcp.callers import Callers
from muniment.mcp.http import Listen, listening, server
from tests.clients.mcp.conftest import COMMAND, Model

SECONDS = 60
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


@dataclass
class Endpoint:
    """Where it listens, and what it has written to standard error."""

    url: str
    errors: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 443

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def call(self, token: str | None, tool: str = "memory_list", /, **arguments: Any) -> httpx2.Response:
        """Call a tool in one request."""
        return self.post(token, call_of(tool, **arguments))

    def post(self, token: str | None, content: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.post(self.url, json=content, headers=HEADERS | bearer | (headers or {}), timeout=SECONDS)


def call_of(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


@contextmanager
def serving(address: str) -> Iterator[Endpoint]:
    """Serve the memory at *address* in this process, until the end of the block."""
    listen, callers = Listen.at("127.0.0.1:0"), Callers(address, False)
    with listening(listen) as listener:
        port = listener.getsockname()[1]
        serves = server(listen, port, callers)
        thread = threading.Thread(target=serves.run, kwargs={"sockets": [listener]})
        thread.start()
        yield Endpoint(listen.url(port))
        serves.should_exit = True
        thread.join(SECONDS)
    callers.close()


@contextmanager
def serving_alone(
    address: str, *options: str, listen: str = "127.0.0.1:0", command: tuple[str, ...] = (COMMAND,)
) -> Iterator[Endpoint]:
    """The same in a process of its own, as it is started at the terminal."""
    started = [*command, "--http", listen, *options]
    environment = {"PATH": os.environ["PATH"], "MUNIMENT_ADDRESS": address}
    with subprocess.Popen(started, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        first = process.stderr.readline()
        found = re.fullmatch(r"serving MCP at (\S+)\n", first)
        assert found, first
        endpoint = Endpoint(found[1])
        reading = threading.Thread(target=endpoint.errors.extend, args=(process.stderr,))
        reading.start()
        try:
            yield endpoint
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
            reading.join()


@asynccontextmanager
async def talking_over_http(endpoint: Endpoint, token: str, **options: Any) -> AsyncIterator[Model]:
    """A model that reaches its server with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http,
        Client(streamable_http_client(endpoint.url, http_client=http), **options) as client,
    ):
        yield Model(client)
