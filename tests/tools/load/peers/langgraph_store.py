"""LangGraph's PostgresStore, in process, without vectors: those need pgvector, which the embedded Postgres has not."""

from __future__ import annotations

import random

from langgraph.store.postgres import PostgresStore

from tests.tools.load.peers.closed_loop import answer, order

_NAMESPACE = ("memories", "agent1")
_TAGS = 10


def main() -> None:
    """`python -m tests.tools.load.peers.langgraph_store`, an `Order` on the standard input."""
    asked = order()
    contents, callers = asked["contents"], asked["callers"]
    with PostgresStore.from_conn_string(asked["conninfo"], pool_config={"min_size": 1, "max_size": 4}) as store:
        store.setup()

        def put(number: int, content: str) -> None:
            store.put(_NAMESPACE, f"key-{number}", {"content": content, "tag": number % _TAGS})

        def save(source: random.Random) -> None:
            put(source.randrange(len(contents)), f"{source.choice(contents)} ({source.getrandbits(40)})")

        def get(source: random.Random) -> None:
            assert store.get(_NAMESPACE, f"key-{source.randrange(len(contents))}") is not None

        def search(source: random.Random) -> None:
            assert store.search(_NAMESPACE, filter={"tag": source.randrange(_TAGS)}, limit=10)

        for number, content in enumerate(contents):
            put(number, content)
        answer({"save": save, "get": get, "search": search}, callers=callers, seconds=asked["seconds"])


if __name__ == "__main__":
    main()
