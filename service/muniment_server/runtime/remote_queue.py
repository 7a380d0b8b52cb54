"""A queue of chunks for a model at an address: whose turn it is, how many are sent at a time, and which have failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from muniment_server.runtime.pauses import Pauses
from muniment_server.runtime.remote_client import RemoteModelError
from muniment_server.runtime.remote_model import batch_size
from muniment_server.search.embedding_queue import START, ChunkPosition, read_remote_batch, store_remote_batch
from muniment_server.search.embeddings import Vector

_LOG = logging.getLogger("muniment.embedder")
_LEFT_OUT_SECONDS = 600.0
"""How long a chunk that failed alone is left out."""
_MAX_LEFT_OUT = 256
"""How many chunks are left out at most: so many more are read with each batch."""


class RemoteQueue:
    """One of two queues of a level of a database: chunks written since, or chunks found without an embedding.

    Agents take turns. A chunk for which the model fails while it answers for other texts is found by sending fewer
    texts at a time. It stays queued, but is left out for a while, so that no other chunk waits for it.
    """

    def __init__(self, *, is_missing: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.pauses = Pauses(clock)
        self._is_missing = is_missing
        self._clock = clock
        self._size = batch_size()
        self._position = START
        self._has_advanced = False
        """Whether anything was stored, or left out, since the first agent's turn."""
        self._left_out: dict[ChunkPosition, float] = {}
        """Until when. The earliest comes first."""

    @property
    def left_out(self) -> int:
        """How many chunks are left out."""
        return len(self._left_out)

    def embed_batch(
        self, connection: psycopg.Connection[Any], embed: Callable[[Sequence[str]], Sequence[Vector]], model: int
    ) -> int | None:
        """Embed the next batch with *embed*.

        Returns how many embeddings were stored, or None if there is nothing to do for now.
        Raises NothingStored, and RemoteModelError if the model answers for no text.
        """
        self._left_out = {chunk: until for chunk, until in self._left_out.items() if self._clock() < until}
        begin, most = self._position, self._size.texts + len(self._left_out)
        queued = read_remote_batch(connection, begin, most=most, model=model, is_missing=self._is_missing)
        if not queued:
            return self._start_over()
        chunks = [chunk for chunk in queued if chunk.position not in self._left_out][: self._size.texts]
        last = (chunks or queued)[-1]
        self._position = last.tenant, last.agent  # if nothing can be stored, other agents have their turn all the same
        if not chunks:
            return 0
        try:
            vectors = self._size.learn(len(chunks), lambda: embed([chunk.text for chunk in chunks]))
        except RemoteModelError as error:
            if len(chunks) > 1:
                self._position = begin  # again, with fewer
            elif error.may_be_the_text:
                self._leave_out(chunks[0].position)
                _LOG.warning("a chunk waits for %d s, because the model fails for it: %s", _LEFT_OUT_SECONDS, error)
                self.pauses.begin()
            if error.may_be_the_text:
                return 0
            raise
        stored = store_remote_batch(connection, chunks, vectors, model=model)
        self._has_advanced = True
        self.pauses.end()
        return stored

    def _start_over(self) -> int | None:
        """Give the first agent its turn again. There is nothing to do for now if the turns of all changed nothing."""
        has_advanced, self._has_advanced, self._position = self._has_advanced, False, START
        return 0 if has_advanced else None

    def _leave_out(self, chunk: ChunkPosition) -> None:
        if len(self._left_out) < _MAX_LEFT_OUT:
            self._has_advanced = True
        else:
            del self._left_out[next(iter(self._left_out))]
        self._left_out[chunk] = self._clock() + _LEFT_OUT_SECONDS
