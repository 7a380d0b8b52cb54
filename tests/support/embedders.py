"""Embedders for tests: the real one in this process, and a quick one that compares words only."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from muniment_server.embedder.e5.model import Model
from muniment_server.embedder.main import EmbeddingSchedule, embed_queued_chunks
from muniment_server.embedder.queue import ChunkEmbedder
from muniment_server.postgres.disk import Disk
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import SINGLE
from muniment_server.postgres.pool import Database as RoleDatabase
from muniment_server.process.stop_signal import StopSignal
from muniment_server.search.embeddings import DIMENSIONS, Vector, vector_of
from tests.support.databases import Database

_ALIKE = {"hound": "dog", "automobile": "car"}
"""Words that the quick embedder treats as equal."""


def quick(text: str, alike: Mapping[str, str] = _ALIKE) -> Vector:
    """An embedding that is close to those of texts with the same words."""
    words = [_direction(alike.get(word, word)) for word in re.findall(r"\w+", text.lower())]
    return vector_of([sum(components) for components in zip(*words, strict=True)] or [0.0] * DIMENSIONS)


@cache
def _direction(word: str) -> Sequence[float]:
    source = random.Random(word)
    return [source.gauss(0, 1) for _ in range(DIMENSIONS)]


class Quick(Model):
    """A model with the interface of the real one. It records the chunks that it embeds."""

    def __init__(self, answer: Callable[[str], Vector] = quick) -> None:
        self._answer = answer
        self.chunks: list[str] = []

    def embed_query(self, text: str) -> Vector:
        return quick(text)

    def embed_chunk(self, text: str) -> Vector:
        self.chunks.append(text)
        return self._answer(text)


def embed_all(database: Database, model: Model) -> None:
    """Compute queued embeddings, until none is queued or a batch could store none."""
    embed_by(database, model.embed_chunk, StopSignal())


def embed_by(database: Database, embed: ChunkEmbedder, ended: StopSignal) -> None:
    """Compute embeddings with *embed*, until none is queued, a batch could store none, or *ended* is set."""
    roles = RoleDatabase(database.conninfo, pool_sizes=SINGLE)
    try:
        embed_queued_chunks(EmbeddingSchedule(Databases.of_one(roles), embed), Disk(None), ended)
    finally:
        roles.close()
