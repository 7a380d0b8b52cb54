"""Muniment by MCP: a `muniment-mcp` for each actor, started with the token of its session."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from muniment import HostClient

from ..adapter import Adapter, operation, serve
from .mcp_stdio import McpServer
from .muniment_development import ARRANGEMENTS, MADE, running, sessions

_COMMAND = str(Path(sys.executable).with_name("muniment-mcp"))


class Mcp(Adapter):
    """The tools of two models."""

    system = "Muniment by MCP"
    arrangements = ARRANGEMENTS
    made: ClassVar[dict[str, str]] = MADE

    def __init__(self, host: HostClient, address: str) -> None:
        super().__init__()
        self.version = metadata.version("muniment")
        self._host = host
        self._address = address
        self._servers: dict[str, McpServer] = {}

    def begin(self, arrangement: str) -> None:
        """New agents, and an MCP server for the session of each actor."""
        self.close()
        opened = sessions(self._host, arrangement)
        self._servers = {
            actor: McpServer([_COMMAND], {"MUNIMENT_ADDRESS": self._address, "MUNIMENT_TOKEN": session.token})
            for actor, session in opened.items()
        }

    def close(self) -> None:
        """End the MCP servers."""
        for server in self._servers.values():
            server.close()

    @operation(key="key", text="text", tags="tags")
    def memory_save(self, actor: str, key: str, text: str, tags: list[str]) -> Any:
        """Store a memory."""
        return self._servers[actor].call("memory_save", key=key, content=text, tags=tags)

    @operation(key="key", reads=True)
    def memory_get(self, actor: str, key: str) -> Any:
        """One memory."""
        return self._servers[actor].call("memory_get", key=key)

    @operation(query="query", limit="limit", reads=True)
    def memory_search(self, actor: str, query: str, limit: int) -> Any:
        """Those that match."""
        return self._servers[actor].call("memory_search", query=query, max_results=limit)

    @operation(reads=True)
    def memory_list(self, actor: str) -> Any:
        """All memories."""
        return self._servers[actor].call("memory_list")

    @operation(key="key")
    def memory_delete(self, actor: str, key: str) -> Any:
        """Delete a memory."""
        return self._servers[actor].call("memory_delete", key=key)

    @operation(text="text")
    def note_add(self, actor: str, text: str) -> Any:
        """Store a note."""
        return self._servers[actor].call("note_add", content=text)

    @operation(reads=True)
    def note_list(self, actor: str) -> Any:
        """All notes, with the usage of the budget."""
        return self._servers[actor].call("note_list")

    @operation(key="key", text="text")
    def block_update(self, actor: str, key: str, text: str) -> Any:
        """Create or replace a block."""
        return self._servers[actor].call("block_update", label=key, content=text)

    @operation(reads=True)
    def block_list(self, actor: str) -> Any:
        """All blocks."""
        return self._servers[actor].call("block_list")

    @operation(text="text")
    def passage_store(self, actor: str, text: str) -> Any:
        """Store a passage."""
        return self._servers[actor].call("passage_store", content=text)

    @operation(query="query", reads=True)
    def passage_search(self, actor: str, query: str) -> Any:
        """Those that match."""
        return self._servers[actor].call("passage_search", query=query)


def main() -> None:
    """Serve a server."""
    with running() as (host, address):
        adapter = Mcp(host, address)
        try:
            serve(adapter)
        finally:
            adapter.close()


if __name__ == "__main__":
    main()
