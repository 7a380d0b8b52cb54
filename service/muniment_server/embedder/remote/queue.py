"""A queue of chunks for a model at an address: whose turn it is, how many are sent at a time, and which have failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg

from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.embedder.queue import (
    BATCH_CHUNKS,
    START,
    ChunkPosition,
    QueuedChunk,
    read_remote_batch,
    store_remote_batch,
)
from muniment_server.embedder.remote.client import ProbeFailedError, RemoteModelError
from muniment_server.process.backoff import Backoff
from muniment_server.search.embeddings import Vector
from muniment_server.telemetry.repeats import Repeats, warn_once

_LOG = logging.getLogger("muniment.embedder")
_QUICK_SECONDS = 7.5
"""An answer within this time is quick: a quarter of what it may take."""
_ATTEMPTS = 3
"""How often a chunk that is refused alone is sent whole: one refusal may have been a failure that has passed."""
_HALVINGS = 3
"""How often it is then shortened by half, because it may be too long for the model."""
MAX_FAILED = 256
"""How many failed chunks are remembered. A batch reads as many more rows as are left out."""

Embed: TypeAlias = Callable[[Sequence[str]], Sequence[Vector]]
"""Embeds the texts of a batch. An empty one is not sent, and gets zeros. Raises RemoteModelError."""


class _ChunkBackoff(Backoff):
    """That of a chunk for which the model fails, while it answers for others."""

    first, longest = 10.0, 86_400.0


@dataclass(slots=True)
class _Failure:
    """What is known of a chunk that has failed alone."""

    backoff: Backoff
    refusals: int = 0


class RemoteQueue:
    """One of the two queues of a level in one database: new chunks, or chunks found later without an embedding.

    Agents take turns. After an error, half as many texts are sent, until the chunk that causes it is sent alone. If the
    model refuses it, the end of its text is sent, where a turn stands after the one before it; then it gets zeros,
    which are similar to nothing. After any other failure it is left out, for longer each time. Texts are never sent
    again without a look at the queue: what was deleted meanwhile, or has expired, is not there.
    """

    def __init__(
        self,
        may_send: Callable[[TenantNumber, AgentNumber], bool],
        *,
        is_missing: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """*may_send*: whether texts of an agent may be sent. Chunks of other agents stay queued."""
        self.backoff = Backoff(clock)
        self._may_send = may_send
        self._repeats = Repeats()
        self._is_missing = is_missing
        self._clock = clock
        self._size = BATCH_CHUNKS
        self._position = START
        self._has_advanced = False
        """Whether anything was stored, or left out, since the first agent's turn."""
        self._failures: dict[ChunkPosition, _Failure] = {}

    @property
    def left_out(self) -> Collection[ChunkPosition]:
        """The chunks that are left out, up to `MAX_FAILED`."""
        return {chunk for chunk, failure in self._failures.items() if failure.backoff.remaining}

    def embed_batch(self, connection: psycopg.Connection[Any], embed: Embed, model: int) -> int | None:
        """Embed the next batch: how many embeddings were stored. None if there is nothing to do for now.

        Raises NothingStored, and RemoteModelError if the model answers for no text, or asks for a pause.
        """
        begin, started = self._position, self._clock()
        chunks = self._next_batch(connection, model)
        if chunks is None:
            return self._start_over()
        if not chunks:
            return 0
        texts = [self._text(chunk) for chunk in chunks]
        sent = [chunk for chunk, text in zip(chunks, texts, strict=True) if text]
        try:
            vectors = embed(texts)
        except RemoteModelError as error:
            if len(sent) > 1 or error.retry_after:
                self._position = begin  # again, perhaps with fewer
            if error.retry_after:
                raise
            if len(sent) == 1:
                self._fail(sent[0].position, error)
            self._size = max(1, len(sent) // 2)
            if isinstance(error, ProbeFailedError):
                raise
            return 0
        if sent and self._clock() - started < _QUICK_SECONDS:
            self._size = min(2 * self._size, BATCH_CHUNKS)
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
        left_out = self.left_out
        most = self._size + len(left_out)
        queued = read_remote_batch(connection, self._position, most=most, model=model, is_missing=self._is_missing)
        if not queued:
            return None
        agents = {agent for agent in {(chunk.tenant, chunk.agent) for chunk in queued} if self._may_send(*agent)}
        ready = [
            chunk
            for chunk in queued
            if (chunk.tenant, chunk.agent) in agents and (not chunk.text or chunk.position not in left_out)
        ]
        chunks = ready[: self._size]
        last = (chunks or queued)[-1]
        self._position = last.tenant, last.agent  # the next agent has its turn, even if nothing can be stored
        return chunks

    def _start_over(self) -> int | None:
        """Begin a new round with the first agent. None if the last one neither stored nor left out anything."""
        has_advanced, self._has_advanced, self._position = self._has_advanced, False, START
        return 0 if has_advanced else None

    def _text(self, chunk: QueuedChunk) -> str:
        """What to send of a chunk: its text, the end of it, or nothing if even that was refused."""
        failure = self._failures.get(chunk.position)
        halvings = max(0, failure.refusals + 1 - _ATTEMPTS) if failure else 0
        if halvings > _HALVINGS:
            warn_once(_LOG, self._repeats, "skipping a chunk that a model refuses: that model does not find it")
            return ""
        return chunk.text[len(chunk.text) - (len(chunk.text) >> halvings) :]

    def _fail(self, chunk: ChunkPosition, error: RemoteModelError) -> None:
        """Leave out a chunk that failed alone, unless it was refused: then it has its next turn, perhaps shortened."""
        failure = self._failures.pop(chunk, None) or _Failure(_ChunkBackoff(self._clock))
        if error.may_be_the_text:
            failure.refusals += 1
        else:
            if isinstance(error, ProbeFailedError):  # the chunk may not be to blame
                failure.backoff.reset()
            else:
                warn_once(_LOG, self._repeats, f"a chunk is left out, because the model fails for it: {error}")
            failure.backoff.begin()
        if len(self._failures) == MAX_FAILED:
            del self._failures[next(iter(self._failures))]  # the one that has not failed for longest
        self._failures[chunk] = failure
        self._has_advanced = True
