"""How the embedder reads queued chunks and stores embeddings at one level. See `embedding_queue.sql`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import psycopg

from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.postgres import queries
from muniment_server.postgres.rows import row_of
from muniment_server.search.embeddings import EMBEDDER, Vector, signs

_QUERIES = queries.load(__package__, "embedding_queue.sql")
_BATCH_CHUNKS = 16
_BATCH_SECONDS = 0.5
"""A batch ends after that time, so that lower levels wait no longer for a higher one, apart from one chunk."""

ChunkEmbedder: TypeAlias = Callable[[str, str], Vector]
"""Embeds a text. The second argument identifies the chunk."""
Position: TypeAlias = tuple[TenantNumber, AgentNumber]
"""The agent served last. Those after it are served next."""
START: Position = (TenantNumber(0), AgentNumber(0))


@dataclass(frozen=True, slots=True)
class _QueuedChunk:
    tenant: TenantNumber
    agent: AgentNumber
    kind: int
    name: str
    change_id: UUID
    number: int
    prior: UUID | None
    text: str


def queue_length(connection: psycopg.Connection[Any]) -> int:
    """How many chunks of the connection's level are queued, up to 100,000."""
    (length,) = connection.execute(_QUERIES["queue_length"]).fetchone() or (0,)
    return int(length)


def embed_batch(connection: psycopg.Connection[Any], embed: ChunkEmbedder, position: Position) -> Position | None:
    """Embed a batch of queued chunks of the connection's level, of the agents after *position*.

    Returns the agent of the last chunk, or None if nothing is queued after *position*.
    """
    end = time.monotonic() + _BATCH_SECONDS
    tenant, agent = position
    cursor: Any = connection.cursor(row_factory=row_of(_QueuedChunk))
    queued: list[_QueuedChunk] = cursor.execute(
        _QUERIES["waiting_chunks"], {"most": _BATCH_CHUNKS, "tenant": tenant, "agent": agent}
    ).fetchall()
    made: list[dict[str, object]] = []
    for chunk in queued:
        made.append(_embedded(chunk, embed(chunk.text, f"{chunk.change_id}.{chunk.number}")))
        tenant, agent = chunk.tenant, chunk.agent
        if time.monotonic() > end:
            break
    if not made:
        return None
    connection.execute(_QUERIES["keep_vectors"], {"embedder": EMBEDDER, "made": json.dumps(made)})
    return tenant, agent


def _embedded(chunk: _QueuedChunk, vector: Vector) -> dict[str, object]:
    return {
        "tenant": chunk.tenant,
        "agent": chunk.agent,
        "kind": chunk.kind,
        "name": chunk.name,
        "change_id": str(chunk.change_id),
        "number": chunk.number,
        "prior": chunk.prior and str(chunk.prior),
        "signs": signs(vector),
        "vector": vector,
    }
