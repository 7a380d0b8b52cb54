"""A queue of chunks for a model at an address: whose turn it is, how many are sent at a time, and which have failed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.embedder.queue import (
    START,
    ChunkPosition,
    QueuedChunk,
    is_waiting,
    read_remote_batch,
    store_remote_batch,
)
from muniment_server.embedder.remote.client import RemoteModelError
from muniment_server.embedder.remote.model import IsWaiting, batch_size
from muniment_server.process.backoff import Backoff
from muniment_server.search.embeddings import Vector
from muniment_server.telemetry.repeats import Repeats, warn_once

_LOG = logging.getLogger("muniment.embedder")
_LEFT_OUT_SECONDS = 600.0
"""How long a chunk is left out after it has failed twice while the probe was answered. Doubles with each failure."""
_MOST_LEFT_OUT_SECONDS = 86_400.0
MAX_FAILED = 256
"""How many failed chunks are remembered, and how many are deferred in a round. A batch reads as many more rows as are
left out."""


@dataclass(frozen=True, slots=True)
class _Failure:
    count: int
    """How often the model failed while the probe was answered."""
    until: float


class RemoteQueue:
    """One of the two queues of a level in one database: new chunks, or chunks found later without an embedding.

    Agents take turns. After an error, fewer texts are sent at a time, until the chunk that causes it is sent alone.
    That chunk stays queued, but is left out for a while, so that no other chunk waits for it.
    """

    def __init__(
        self,
        may_send: Callable[[TenantNumber, AgentNumber], bool],
        *,
        is_missing: bool,
        tries_again: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """*may_send*: whether texts of an agent may be sent. Chunks of other agents stay queued.

        *tries_again*: whether chunks that failed alone have their turn again after a while.
        """
        self.backoff = Backoff(clock)
        self.sent = 0
        """How many batches were given to the model."""
        self._may_send = may_send
        self._repeats = Repeats()
        self._is_missing = is_missing
        self._tries_again = tries_again
        self._clock = clock
        self._size = batch_size()
        self._position = START
        self._has_advanced = False
        """Whether anything was stored, or left out, since the first agent's turn."""
        self._failures: dict[ChunkPosition, _Failure] = {}
        self._deferred: set[ChunkPosition] = set()
        """Chunks that failed alone in this round. They are tried after all others."""

    @property
    def failed(self) -> int:
        """How many chunks have failed and have no embedding yet, up to `MAX_FAILED`."""
        return len(self._failures)

    def embed_batch(
        self,
        connection: psycopg.Connection[Any],
        embed: Callable[[Sequence[str], IsWaiting], Sequence[Vector]],
        model: int,
    ) -> int | None:
        """Embed the next batch with *embed*, which asks before it sends a text again.

        Returns how many embeddings were stored, or None if there is nothing to do for now.
        Raises NothingStored, and RemoteModelError if the model answers for no text.
        """
        begin = self._position
        chunks = self._next_batch(connection, model)
        if chunks is None:
            return self._start_over()
        if not chunks:
            return 0

        def still_waits(index: int) -> bool:
            chunk = chunks[index]
            return self._may_send(chunk.tenant, chunk.agent) and is_waiting(connection, chunk, model=model)

        def send() -> Sequence[Vector]:
            self.sent += 1
            return embed([chunk.text for chunk in chunks], still_waits)

        sent = [chunk.position for chunk in chunks if chunk.text]
        try:
            vectors = self._size.run(len(sent), send) if sent else send()
        except RemoteModelError as error:
            if len(sent) > 1 or error.retry_after:
                self._position = begin  # again, perhaps with fewer
            else:
                self._leave_out(sent[0], error)
            if error.may_be_the_text:
                return 0
            raise
        stored = store_remote_batch(connection, chunks, vectors, model=model)
        for chunk in chunks:
            self._failures.pop(chunk.position, None)
        self._has_advanced = True
        if sent:
            self.backoff.reset()
        return stored

    def _next_batch(self, connection: psycopg.Connection[Any], model: int) -> Sequence[QueuedChunk] | None:
        """The next chunks to embed, without those that are left out. None: no agent after the last one has any.

        A chunk that has expired is not left out: it is not sent, and while it waits, its agent may not be searched with
        the model.
        """
        now = self._clock()
        left_out = self._deferred | {chunk for chunk, failure in self._failures.items() if now < failure.until}
        most = self._size.texts + len(left_out)
        queued = read_remote_batch(connection, self._position, most=most, model=model, is_missing=self._is_missing)
        if not queued:
            return None
        agents = {agent for agent in {(chunk.tenant, chunk.agent) for chunk in queued} if self._may_send(*agent)}
        ready = [
            chunk
            for chunk in queued
            if (chunk.tenant, chunk.agent) in agents and (not chunk.text or chunk.position not in left_out)
        ]
        chunks = ready[: self._size.texts]
        last = (chunks or queued)[-1]
        self._position = last.tenant, last.agent  # the next agent has its turn, even if nothing can be stored
        return chunks

    def _start_over(self) -> int | None:
        """Begin a new round with the first agent. None if the last one neither stored nor left out anything."""
        has_advanced, self._has_advanced, self._position = self._has_advanced, False, START
        if has_advanced:
            return 0
        self._deferred.clear()
        return None

    def _leave_out(self, chunk: ChunkPosition, error: RemoteModelError) -> None:
        """Leave out a chunk that failed alone until all others have had their turn. Longer, if it failed before."""
        failure = self._failures.get(chunk)
        count = (failure.count if failure else 0) + error.may_be_the_text
        if not self._tries_again:
            self._remember(chunk, _Failure(count, math.inf))
            return
        if error.may_be_the_text:
            self.backoff.begin()
            seconds = 0.0 if count == 1 else min(_LEFT_OUT_SECONDS * 2 ** min(count - 2, 30), _MOST_LEFT_OUT_SECONDS)
            self._remember(chunk, _Failure(count, self._clock() + seconds))
            warn_once(_LOG, self._repeats, f"a chunk is left out, because the model fails for it: {error}")
        if len(self._deferred) == MAX_FAILED:
            self._deferred.clear()
        else:
            self._has_advanced = True
        self._deferred.add(chunk)

    def _remember(self, chunk: ChunkPosition, failure: _Failure) -> None:
        if self._failures.pop(chunk, None) is None and len(self._failures) == MAX_FAILED:
            del self._failures[min(self._failures, key=lambda each: self._failures[each].until)]
        self._failures[chunk] = failure
        self._has_advanced = True
