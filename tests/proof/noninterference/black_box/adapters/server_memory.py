"""The reference memory server of MCP: a graph of entities in one file.

It has no users. Its documentation offers the variable MEMORY_FILE_PATH: a server and a file for each actor.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from ..adapter import Adapter, Boundary, operation, serve
from .mcp_stdio import McpServer

_USERS = "a server and a file for each user"
_LEVELS = "a server and a file for each level"
_TOGETHER = "one file for both levels"
_TRUST = "a server and a file for each integrity"
_MIXED = "one file for trusted and untrusted contexts"
_PACKAGE = (
    Path(os.environ["NONINTERFERENCE_ENVIRONMENTS"]) / "server-memory/node_modules/@modelcontextprotocol/server-memory"
)


class ServerMemory(Adapter):
    """Entities with observations, and relations."""

    system = "MCP server-memory"
    arrangements: ClassVar[dict[str, Boundary]] = {
        _USERS: "another user",
        _LEVELS: "above",
        _TOGETHER: "above",
        _TRUST: "untrusted",
        _MIXED: "untrusted",
    }

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._files = {name: Path(folder, f"{name}.jsonl") for name in ("low", "high")}
        program = ["node", str(_PACKAGE / "dist/index.js")]
        self._servers = {
            name: McpServer(program, {"MEMORY_FILE_PATH": str(file)}) for name, file in self._files.items()
        }
        self.version = json.loads((_PACKAGE / "package.json").read_text(encoding="utf-8"))["version"]

    def begin(self, arrangement: str) -> None:
        """Delete the files: the server reads its file for each call."""
        for file in self._files.values():
            file.unlink(missing_ok=True)
        self._together = arrangement in {_TOGETHER, _MIXED}

    def close(self) -> None:
        """End the servers."""
        for server in self._servers.values():
            server.close()

    @operation(key="key", text="text")
    def create_entities(self, actor: str, key: str, text: str) -> Any:
        """A new entity."""
        return self._call(actor, "create_entities", entities=[_entity(key, text)])

    @operation(key="key", text="text")
    def add_observations(self, actor: str, key: str, text: str) -> Any:
        """What is said of an entity."""
        return self._call(actor, "add_observations", observations=[{"entityName": key, "contents": [text]}])

    @operation(key="key", other="key")
    def create_relations(self, actor: str, key: str, other: str) -> Any:
        """A relation of two entities."""
        return self._call(
            actor, "create_relations", relations=[{"from": key, "to": other, "relationType": "belongs to"}]
        )

    @operation(key="key")
    def delete_entities(self, actor: str, key: str) -> Any:
        """Delete an entity."""
        return self._call(actor, "delete_entities", entityNames=[key])

    @operation(reads=True)
    def read_graph(self, actor: str) -> Any:
        """Everything."""
        return self._call(actor, "read_graph")

    @operation(query="query", reads=True)
    def search_nodes(self, actor: str, query: str) -> Any:
        """The entities that match."""
        return self._call(actor, "search_nodes", query=query)

    @operation(key="key", reads=True)
    def open_nodes(self, actor: str, key: str) -> Any:
        """One entity."""
        return self._call(actor, "open_nodes", names=[key])

    def _call(self, actor: str, tool: str, **arguments: Any) -> Any:
        return self._servers["low" if self._together else actor].call(tool, **arguments)


def _entity(key: str, text: str) -> dict[str, Any]:
    return {"name": key, "entityType": "fact", "observations": [text]}


def main() -> None:
    """Serve two servers."""
    with tempfile.TemporaryDirectory() as folder:
        adapter = ServerMemory(folder)
        try:
            serve(adapter)
        finally:
            adapter.close()


if __name__ == "__main__":
    main()
