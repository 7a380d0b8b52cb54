"""Muniment by gRPC, through its Python client."""

from __future__ import annotations

from importlib import metadata
from typing import Any, ClassVar

from muniment import HostClient, MunimentError

from ..adapter import Adapter, operation, serve
from .muniment_development import ARRANGEMENTS, MADE, running, sessions


class Grpc(Adapter):
    """Memories, notes, blocks, passages and the prompt of two sessions."""

    system = "Muniment by gRPC"
    arrangements = ARRANGEMENTS
    made: ClassVar[dict[str, str]] = MADE
    refusals = (MunimentError,)

    def __init__(self, host: HostClient) -> None:
        super().__init__()
        self.version = metadata.version("muniment-server")
        self._host = host

    def begin(self, arrangement: str) -> None:
        """New agents, with a session for each actor."""
        self._sessions = sessions(self._host, arrangement)

    @operation(key="key", text="text", tags="tags")
    def save_memory(self, actor: str, key: str, text: str, tags: list[str]) -> Any:
        """Store a memory."""
        return self._sessions[actor].save_memory(key, text, tags=tags)

    @operation(key="key", reads=True)
    def get_memory(self, actor: str, key: str) -> Any:
        """One memory."""
        return self._sessions[actor].get_memory(key)

    @operation(limit="limit", reads=True)
    def list_memories(self, actor: str, limit: int) -> Any:
        """One page."""
        return self._sessions[actor].list_memories_page(page_size=limit)

    @operation(query="query", limit="limit", tags="tags", reads=True)
    def search_memories(self, actor: str, query: str, limit: int, tags: list[str]) -> Any:
        """Those that match, with scores."""
        return self._sessions[actor].search_memories(query, max_results=limit, tags=tags)

    @operation(key="key")
    def delete_memory(self, actor: str, key: str) -> Any:
        """Delete a memory."""
        return self._sessions[actor].delete_memory(key)

    @operation(text="text")
    def add_note(self, actor: str, text: str) -> Any:
        """Store a note."""
        written = self._sessions[actor].add_note(text)
        self.saved.setdefault(actor, []).append(written.note.note_id)
        return written

    @operation(item="item", text="text")
    def update_note(self, actor: str, item: int, text: str) -> Any:
        """Replace a note."""
        return self._sessions[actor].update_note(self.item(actor, item), text)

    @operation(reads=True)
    def list_notes(self, actor: str) -> Any:
        """One page, with the usage of the budget."""
        return self._sessions[actor].list_notes_page()

    @operation(key="key", text="text")
    def update_block(self, actor: str, key: str, text: str) -> Any:
        """Create or replace a block."""
        return self._sessions[actor].update_block(key, text)

    @operation(text="text")
    def store_passage(self, actor: str, text: str) -> Any:
        """Store a passage."""
        return self._sessions[actor].store_passage(text)

    @operation(query="query", limit="limit", reads=True)
    def search_passages(self, actor: str, query: str, limit: int) -> Any:
        """Those that match."""
        return self._sessions[actor].search_passages(query, max_results=limit)

    @operation(reads=True)
    def render_prompt(self, actor: str) -> Any:
        """The text of blocks and notes."""
        return self._sessions[actor].render_prompt()


def main() -> None:
    """Serve a server."""
    with running() as (host, _):
        serve(Grpc(host))


if __name__ == "__main__":
    main()
