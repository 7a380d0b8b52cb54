"""A client of an MCP server over HTTP, as small as the adapters need it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-06-18",
}


class McpServer:
    """An MCP server, started, which says on standard error where it listens. It serves every bearer."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, **environment}
        )
        assert self._process.stderr
        said = self._process.stderr.readline()
        found = re.search(r"http://\S+", said)
        if found is None:
            raise EOFError(f"the MCP server ended: {said}")
        where = urlsplit(found[0])
        self._path = where.path
        self._connection = HTTPConnection(where.hostname or "", where.port, timeout=60)

    def call(self, bearer: str, tool: str, **arguments: Any) -> Any:
        """What a tool answers to *bearer*: its result or its error, whole."""
        parameters = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}
        headers = {**_HEADERS, "Authorization": f"Bearer {bearer}"}
        self._connection.request("POST", self._path, json.dumps(message), headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise EOFError(f"the MCP server answered {response.status}: {body[:200]!r}")
        answer = json.loads(body)
        return answer.get("result", answer.get("error"))

    def close(self) -> None:
        """End it."""
        assert self._process.stderr
        self._connection.close()
        self._process.terminate()
        self._process.wait(30)
        self._process.stderr.close()
