"""Muniment by gRPC, through its Python client."""

from __future__ import annotations

from importlib import metadata
from typing import Any, ClassVar

from muniment import HostClient, ItemKind, MunimentError

from ..adapter import Adapter, operation, serve
from .muniment_development import ARRANGEMENTS, MADE, SHARED, Agents, running


class Grpc(Adapter):
    """Memories, notes, blocks, passages and the prompt of two sessions."""

    system = "Muniment by gRPC"
    arrangements = ARRANGEMENTS
    made: ClassVar[dict[str, str]] = MADE
    refusals = (MunimentError,)

    def __init__(self, host: HostClient) -> None:
        super().__init__()
        self.version = metadata.version("muniment-server")
        self.agents = Agents(host)

    def begin(self, arrangement: str) -> None:
        """New agents, with sessions for each actor."""
        begun = self.agents.begin(arrangement)
        self._sessions = {actor: sessions.own for actor, sessions in begun.items()}
        self._owners = {actor: sessions.of_owner for actor, sessions in begun.items()}

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

    @operation(key="key", reads=True)
    def list_versions(self, actor: str, key: str) -> Any:
        """The versions of a memory, with what they have replaced."""
        return self._sessions[actor].list_versions_page(ItemKind.MEMORY, key, with_revisions=True)

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

    @operation(query="query", limit="limit", reads=True)
    def search_notes(self, actor: str, query: str, limit: int) -> Any:
        """Those that match, with the usage of the budget."""
        return self._sessions[actor].search_notes(query, max_results=limit)

    @operation(key="key", text="text")
    def update_block(self, actor: str, key: str, text: str) -> Any:
        """Create or replace a block."""
        return self._sessions[actor].update_block(key, text)

    @operation(text="text")
    def update_shared_block(self, actor: str, text: str) -> Any:
        """Replace a block that another agent shares."""
        return self._owners[actor].update_block(SHARED, text)

    @operation(key="key", reads=True)
    def get_block(self, actor: str, key: str) -> Any:
        """One block."""
        return self._sessions[actor].get_block(key)

    @operation(limit="limit", reads=True)
    def list_blocks(self, actor: str, limit: int) -> Any:
        """One page, with the shared block."""
        return self._sessions[actor].list_blocks_page(page_size=limit)

    @operation(text="text")
    def store_passage(self, actor: str, text: str) -> Any:
        """Store a passage."""
        return self._sessions[actor].store_passage(text)

    @operation(limit="limit", reads=True)
    def list_passages(self, actor: str, limit: int) -> Any:
        """One page."""
        return self._sessions[actor].list_passages_page(page_size=limit)

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
