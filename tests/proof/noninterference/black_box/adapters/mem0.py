"""mem0 with Qdrant in a local folder. No model is run: stubs take the place of the LLM, the embedding model, and the
tokenizer of its keyword search, which would be downloaded."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from importlib import metadata
from types import SimpleNamespace
from typing import Any, ClassVar

os.environ["MEM0_TELEMETRY"] = "False"

import numpy as np
from mem0 import Memory

from ..adapter import Adapter, Boundary, operation, serve

_DIMENSIONS = 64
_DIGITS = 6
_USERS = "a user_id for each user"
_LEVELS = "a user_id and an agent_id for each level"
_STORES = "a vector store for each user"
_KEYWORDS = "a user_id for each user, with keyword search (BM25)"
_TOGETHER = "one user_id for both levels"
_TRUST = "a user_id and an agent_id for each integrity"
_MIXED = "one user_id for trusted and untrusted contexts"


class Embedder:
    """What mem0 asks of an embedding model: texts with the same words have similar vectors."""

    def embed(self, text: str, memory_action: str | None = None) -> Sequence[float]:
        """The vector of a text."""
        vector = [0.01] * _DIMENSIONS
        for word in _words(text):
            vector[_number(word) % _DIMENSIONS] += 1.0
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> Sequence[Sequence[float]]:
        """The vectors of several."""
        return [self.embed(text, memory_action) for text in texts]


class Keywords:
    """What mem0 asks of the tokenizer of BM25: a weight of 1 for each word. The store computes the rest."""

    def embed(self, texts: Sequence[str]) -> Sequence[Any]:
        """The sparse vectors of several texts."""
        numbers = [sorted({_number(word) for word in _words(text)}) for text in texts]
        return [SimpleNamespace(indices=np.array(each), values=np.ones(len(each))) for each in numbers]


class Mem0(Adapter):
    """Memories of one or two users, stored as they are given (`infer=False`)."""

    system = "mem0"
    version = metadata.version("mem0ai")
    arrangements: ClassVar[dict[str, Boundary]] = {
        _STORES: "another user",
        _USERS: "another user",
        _LEVELS: "above",
        _KEYWORDS: "another user",
        _TOGETHER: "above",
        _TRUST: "untrusted",
        _MIXED: "untrusted",
    }
    refusals = (ValueError,)

    def begin(self, arrangement: str) -> None:
        """New vector stores."""
        keywords = Keywords() if arrangement == _KEYWORDS else False
        shared = _memory(keywords)
        low = {"user_id": "alice"}
        high = {
            _LEVELS: {"user_id": "alice", "agent_id": "confidential"},
            _TRUST: {"user_id": "alice", "agent_id": "untrusted"},
            _TOGETHER: low,
            _MIXED: low,
        }.get(arrangement, {"user_id": "bob"})
        if arrangement == _LEVELS:
            low = {"user_id": "alice", "agent_id": "public"}
        if arrangement == _TRUST:
            low = {"user_id": "alice", "agent_id": "trusted"}
        self._memories = {"low": shared, "high": _memory(keywords) if arrangement == _STORES else shared}
        self._owners = {"low": low, "high": high}

    @operation(text="text", tags="tags")
    def add(self, actor: str, text: str, tags: list[str]) -> Any:
        """Store a memory."""
        added = self._memories[actor].add(text, **self._owners[actor], metadata={"tags": tags}, infer=False)
        self.saved.setdefault(actor, []).extend(each["id"] for each in added["results"])
        return added

    @operation(query="query", limit="limit", reads=True)
    def search(self, actor: str, query: str, limit: int) -> Any:
        """Those that match. The last digits of a score depend on how many vectors are multiplied at once."""
        found = self._memories[actor].search(query, filters=self._owners[actor], top_k=limit)["results"]
        return [{**each, "score": round(each["score"], _DIGITS)} for each in found]

    @operation(reads=True)
    def get_all(self, actor: str) -> Any:
        """All, by text: Qdrant orders them by their random ids."""
        found = self._memories[actor].get_all(filters=self._owners[actor])["results"]
        return sorted(found, key=lambda each: (each["memory"], each["metadata"]["tags"]))

    @operation(item="item", reads=True)
    def get(self, actor: str, item: int) -> Any:
        """One."""
        return self._memories[actor].get(self.item(actor, item))

    @operation(item="item", reads=True)
    def history(self, actor: str, item: int) -> Any:
        """The versions of one."""
        return self._memories[actor].history(self.item(actor, item))

    @operation(item="item", text="text")
    def update(self, actor: str, item: int, text: str) -> Any:
        """Replace one."""
        return self._memories[actor].update(self.item(actor, item), text)

    @operation(item="item")
    def delete(self, actor: str, item: int) -> Any:
        """Delete one."""
        return self._memories[actor].delete(self.item(actor, item))


def _memory(keywords: Keywords | bool) -> Any:
    folder = tempfile.mkdtemp()
    store = {"path": f"{folder}/qdrant", "embedding_model_dims": _DIMENSIONS}
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{folder}/history.db",
            "llm": unused,
            "embedder": unused,
        }
    )
    memory.embedding_model = Embedder()
    memory.vector_store._bm25_encoder = keywords
    return memory


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _number(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4])


if __name__ == "__main__":
    serve(Mem0())
