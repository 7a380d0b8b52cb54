"""A client of MCP servers on standard input and output, as small as the adapters need it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

_PROTOCOL = "2025-06-18"


class McpServer:
    """An MCP server, started."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._ids = itertools.count(1)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, **environment},
        )
        hello = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": {"name": "black box", "version": "1"}}
        self.version: str = self._request("initialize", hello)["result"]["serverInfo"]["version"]
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers: its result or its error, whole."""
        answer = self._request("tools/call", {"name": tool, "arguments": arguments})
        return answer.get("result", answer.get("error"))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _request(self, method: str, parameters: Mapping[str, Any]) -> Any:
        assert self._process.stdout
        number = next(self._ids)
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return message
        raise EOFError("the MCP server ended")

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
