"""LangGraph's SqliteStore."""

from __future__ import annotations

from langgraph.store.sqlite import SqliteStore

from ..adapter import serve
from .langgraph_store import Store


class Sqlite(Store):
    """The store in a database in memory."""

    system = "LangGraph SqliteStore"
    package = "langgraph-checkpoint-sqlite"


def main() -> None:
    """Serve a store."""
    adapter = Sqlite()
    with SqliteStore.from_conn_string(":memory:") as store:
        store.setup()
        adapter.store = store
        serve(adapter)


if __name__ == "__main__":
    main()
