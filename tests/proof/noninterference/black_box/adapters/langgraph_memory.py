"""LangGraph's InMemoryStore."""

from __future__ import annotations

from langgraph.store.memory import InMemoryStore

from ..adapter import serve
from .langgraph_store import Store


class Memory(Store):
    """The store in this process."""

    system = "LangGraph InMemoryStore"
    package = "langgraph-checkpoint"

    def __init__(self) -> None:
        super().__init__()
        self.store = InMemoryStore()


if __name__ == "__main__":
    serve(Memory())
