"""How the embedder reads queued chunks and stores embeddings at one level. See `queue.sql`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias
from uuid import UUID

import psycopg

from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.postgres import queries
from muniment_server.postgres.driver_errors import location_of
from muniment_server.postgres.rows import row_of
from muniment_server.search.embeddings import DIMENSIONS, EMBEDDER, Vector, signs
from muniment_server.telemetry import embedder_metrics as metrics

_LOG = logging.getLogger("muniment.embedder")
_QUERIES = queries.load(__package__, "queue.sql")
BATCH_CHUNKS = 16
"""The most chunks in one batch. A batch takes up to half a second, for which lower levels wait."""
CHUNKS_AT_ONCE = 1000
"""How many chunks one statement looks at for embeddings that are missing or to be removed."""

ChunkEmbedder: TypeAlias = Callable[[str], Vector]
"""Embeds a text."""
_SIMILAR_TO_NOTHING: Vector = (0,) * DIMENSIONS
"""Stored for a chunk for which the model fails twice: it is found by its words alone. Those behind it do not wait."""
Position: TypeAlias = tuple[TenantNumber, AgentNumber]
"""The agent served last. Those after it are served next."""
START: Position = (TenantNumber(0), AgentNumber(0))


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """A chunk. Those after it are looked at next."""

    tenant: TenantNumber
    agent: AgentNumber
    kind: int
    name: str
    change_id: UUID
    number: int


FIRST = ChunkPosition(*START, 0, "", UUID(int=0), 0)


@dataclass(frozen=True, slots=True)
class ChunkBatch:
    """Chunks of one tenant: those after *after*, up to and including *last*."""

    after: ChunkPosition
    last: ChunkPosition

    @property
    def parameters(self) -> Mapping[str, object]:
        """The parameters of a statement on these chunks."""
        return {**asdict(self.after), **{f"last_{name}": value for name, value in asdict(self.last).items()}}


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """A batch that the built-in model has embedded."""

    last: Position
    """The agent of its last chunk."""
    stored: int
    """How many embeddings were stored: those of chunks that are locked or were deleted meanwhile are not."""


@dataclass(frozen=True, slots=True)
class _Kept:
    agent: AgentNumber
    kind: int
    name: str
    change_id: UUID
    number: int


class NothingStored(Exception):
    """All chunks of a batch are locked, and stay queued, or were deleted."""


@dataclass(frozen=True, slots=True)
class QueuedChunk:
    """A chunk to embed, with its text."""

    tenant: TenantNumber
    agent: AgentNumber
    kind: int
    name: str
    change_id: UUID
    number: int
    prior: UUID | None
    before_name: str | None
    before_change: UUID | None
    text: str
    """Empty if it may not be sent to an address, because the item has expired."""

    @property
    def position(self) -> ChunkPosition:
        return ChunkPosition(self.tenant, self.agent, self.kind, self.name, self.change_id, self.number)


def queue_length(connection: psycopg.Connection[Any]) -> int:
    """How many chunks of the connection's level are queued, up to 100,000."""
    (length,) = connection.execute(_QUERIES["queue_length"]).fetchone() or (0,)
    return int(length)


def remote_queue_length(connection: psycopg.Connection[Any], model: int) -> int:
    """How many chunks of the connection's level wait for a model at an address, up to 100,000."""
    (length,) = connection.execute(_QUERIES["remote_queue_length"], {"model": model}).fetchone() or (0,)
    return int(length)


def embed_batch(
    connection: psycopg.Connection[Any],
    embed: ChunkEmbedder,
    position: Position,
    *,
    next_model: int | None = None,
    before_storing: Callable[[Position], object] | None = None,
) -> EmbeddedBatch | None:
    """Embed a batch of queued chunks of the connection's level, of the agents after *position*.

    Then queue them for *next_model*, a model at an address, if given. *before_storing* is called with each agent before
    its embeddings are stored: if they cannot be stored, the next batch can begin after it. Returns None if nothing is
    queued after *position*.
    """
    chunks = _waiting(connection, position, BATCH_CHUNKS)
    if not chunks:
        return None
    made = [_embedded(chunk, _vector(embed, chunk.text)) for chunk in chunks]
    stored = 0
    for of_agent, parameters in _by_agent(made):
        if before_storing is not None:
            before_storing(of_agent)
        stored += _keep(connection, parameters, next_model)
    return EmbeddedBatch((chunks[-1].tenant, chunks[-1].agent), stored)


def _keep(connection: psycopg.Connection[Any], made: Mapping[str, object], next_model: int | None) -> int:
    """Store embeddings of one agent, and queue their chunks for *next_model*; return how many were stored."""
    cursor: Any = connection.cursor(row_factory=row_of(_Kept))
    with connection.transaction() if next_model is not None else nullcontext():
        kept = cursor.execute(_QUERIES["keep_vectors"], {**made, "embedder": EMBEDDER}).fetchall()
        if next_model is not None and kept:
            chunks = json.dumps([asdict(chunk) for chunk in kept], default=str)
            queued = {"tenant": made["tenant"], "kept": chunks, "model": next_model}
            connection.execute(_QUERIES["queue_kept"], queued)
    return len(kept)


def read_remote_batch(
    connection: psycopg.Connection[Any], position: Position, *, most: int, model: int, is_missing: bool
) -> Sequence[QueuedChunk]:
    """At most *most* chunks that wait for the *model* at an address, of the agents after *position*.

    *is_missing* takes chunks that were found without an embedding by that model, instead of those written since.
    """
    return _waiting(connection, position, most, model=model, is_missing=is_missing)


def store_remote_batch(
    connection: psycopg.Connection[Any], chunks: Sequence[QueuedChunk], vectors: Sequence[Vector], *, model: int
) -> int:
    """Store the embeddings of *chunks* by the *model* at an address. Returns how many were stored.

    Those of chunks that are locked or were deleted meanwhile are not. Raises NothingStored if none was.
    """
    made = [
        {
            **_embedded(chunk, vector),
            "prior_name": chunk.before_name,
            "prior": chunk.before_change and str(chunk.before_change),
        }
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]
    stored = sum(
        connection.execute(_QUERIES["keep_remote_vectors"], {**parameters, "model": model}).rowcount
        for parameters in _by_tenant(made)
    )
    if not stored:
        raise NothingStored
    return stored


def queue_missing(connection: psycopg.Connection[Any], after: ChunkPosition, *, model: int) -> ChunkPosition | None:
    """Queue those of a batch of the connection's chunks that have no embedding by a model at an address.

    Returns the last chunk of the batch, from which to continue, or None if there are no more.
    """
    batch = next_batch(connection, after)
    if batch is None:
        return None
    connection.execute(_QUERIES["queue_missing"], {**batch.parameters, "model": model})
    return batch.last


def next_batch(connection: psycopg.Connection[Any], after: ChunkPosition) -> ChunkBatch | None:
    """The next chunks of the connection's level after a given one, or None if there are no more."""
    cursor: Any = connection.cursor(row_factory=row_of(ChunkPosition))
    while True:
        last = cursor.execute(_QUERIES["last_of_batch"], {**asdict(after), "most": CHUNKS_AT_ONCE}).fetchone()
        if last is not None:
            return ChunkBatch(after, last)
        found = connection.execute(_QUERIES["next_tenant"], {"tenant": after.tenant}).fetchone()
        if found is None:
            return None
        after = replace(FIRST, tenant=found[0])


def _by_agent(made: Sequence[dict[str, Any]]) -> Iterator[tuple[Position, Mapping[str, object]]]:
    """The parameters of a statement for each agent. *made* is in their order."""
    for position, of_agent in groupby(made, key=itemgetter("tenant", "agent")):
        yield position, {"tenant": position[0], "made": json.dumps(list(of_agent))}


def _by_tenant(made: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """The parameters of a statement for each tenant. *made* is in the order of tenants."""
    for tenant, of_tenant in groupby(made, key=itemgetter("tenant")):
        yield {"tenant": tenant, "made": json.dumps(list(of_tenant))}


def _waiting(
    connection: psycopg.Connection[Any],
    position: Position,
    most: int,
    *,
    model: int | None = None,
    is_missing: bool = False,
) -> Sequence[QueuedChunk]:
    tenant, agent = position
    cursor: Any = connection.cursor(row_factory=row_of(QueuedChunk))
    parameters = {"most": most, "tenant": tenant, "agent": agent, "model": model, "is_missing": is_missing}
    found: Sequence[QueuedChunk] = cursor.execute(_QUERIES["waiting_chunks"], parameters).fetchall()
    return found


def _vector(embed: ChunkEmbedder, text: str) -> Vector:
    try:
        return embed(text)
    except Exception:  # noqa: BLE001 - it is tried again
        pass
    try:
        return embed(text)
    except Exception as error:  # noqa: BLE001 - whatever fails with this chunk, the others continue
        metrics.EMBEDDING_FAILURES.inc()
        _LOG.error("a chunk is found by words alone: the model failed twice\n%s", location_of(error))
        return _SIMILAR_TO_NOTHING


def _embedded(chunk: QueuedChunk, vector: Vector) -> dict[str, object]:
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
