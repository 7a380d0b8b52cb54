"""Muniment by MCP over HTTP: one `muniment-mcp` for all, to which each actor sends the token of its session."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from muniment import HostClient

from ..adapter import Adapter, operation, serve
from .mcp_http import McpServer
from .muniment_development import ARRANGEMENTS, MADE, SHARED, Agents, running

_COMMAND = str(Path(sys.executable).with_name("muniment-mcp"))


class Mcp(Adapter):
    """The tools of two models."""

    system = "Muniment by MCP"
    arrangements = ARRANGEMENTS
    made: ClassVar[dict[str, str]] = MADE

    def __init__(self, host: HostClient, address: str) -> None:
        super().__init__()
        self.version = metadata.version("muniment")
        self._agents = Agents(host)
        self._server = McpServer([_COMMAND, "--http", "127.0.0.1:0"], {"MUNIMENT_ADDRESS": address})

    def begin(self, arrangement: str) -> None:
        """New agents, and sessions for each actor."""
        begun = self._agents.begin(arrangement)
        self._tokens = {actor: sessions.own.token for actor, sessions in begun.items()}
        self._owners = {actor: sessions.of_owner.token for actor, sessions in begun.items()}

    def close(self) -> None:
        """End the MCP server."""
        self._server.close()

    def _call(self, actor: str, tool: str, **arguments: Any) -> Any:
        return self._server.call(self._tokens[actor], tool, **arguments)

    @operation(key="key", text="text", tags="tags")
    def memory_save(self, actor: str, key: str, text: str, tags: list[str]) -> Any:
        """Store a memory."""
        return self._call(actor, "memory_save", key=key, content=text, tags=tags)

    @operation(key="key", reads=True)
    def memory_get(self, actor: str, key: str) -> Any:
        """One memory."""
        return self._call(actor, "memory_get", key=key)

    @operation(query="query", limit="limit", reads=True)
    def search(self, actor: str, query: str, limit: int) -> Any:
        """What matches, of every kind."""
        return self._call(actor, "search", query=query, max_results=limit)

    @operation(reads=True)
    def memory_list(self, actor: str) -> Any:
        """All memories."""
        return self._call(actor, "memory_list")

    @operation(key="key")
    def memory_delete(self, actor: str, key: str) -> Any:
        """Delete a memory."""
        return self._call(actor, "memory_delete", key=key)

    @operation(text="text")
    def note_add(self, actor: str, text: str) -> Any:
        """Store a note."""
        return self._call(actor, "note_add", content=text)

    @operation(reads=True)
    def note_list(self, actor: str) -> Any:
        """All notes, with the usage of the budget."""
        return self._call(actor, "note_list")

    @operation(key="key", text="text")
    def block_update(self, actor: str, key: str, text: str) -> Any:
        """Create or replace a block."""
        return self._call(actor, "block_update", label=key, content=text)

    @operation(text="text")
    def block_update_shared(self, actor: str, text: str) -> Any:
        """Replace a block that another agent shares."""
        return self._server.call(self._owners[actor], "block_update", label=SHARED, content=text)

    @operation(reads=True)
    def block_list(self, actor: str) -> Any:
        """All blocks, with the shared one."""
        return self._call(actor, "block_list")

    @operation(text="text")
    def passage_store(self, actor: str, text: str) -> Any:
        """Store a passage."""
        return self._call(actor, "passage_store", content=text)

    @operation(reads=True)
    def passage_list(self, actor: str) -> Any:
        """All passages."""
        return self._call(actor, "passage_list")


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
