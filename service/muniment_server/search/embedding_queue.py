"""What the embedder does at one level: it reads what waits for a vector, and writes the vectors. See embedding.sql."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import psycopg
from psycopg.types.json import Jsonb

from muniment_server.postgres import queries
from muniment_server.search.embeddings import EMBEDDER, Vector, signs

_QUERIES = queries.load("embedding")
_BATCH = 16
"""Pieces at most."""
_SECONDS = 0.5
"""After which a batch ends, with the piece in hand: as long a higher level may keep a lower one waiting."""

Embed: TypeAlias = Callable[[str, str], Vector]
"""What a text means; beside it the name of the piece, which no other has."""
Turn: TypeAlias = tuple[int, int]
"""A tenant and an agent, the last that was served: those after it are next."""
FIRST: Turn = (0, 0)


def embed_some(connection: psycopg.Connection[Any], embed: Embed, turn: Turn) -> Turn | None:
    """Give some waiting pieces of the connection's level their vectors, those of the agents after *turn*.

    Returns the agent of the last one; None when after *turn* nothing waits.
    """
    ended = time.monotonic() + _SECONDS
    tenant, agent = turn
    pieces = connection.execute(
        _QUERIES["waiting_pieces"], {"most": _BATCH, "tenant": tenant, "agent": agent}
    ).fetchall()
    made: list[dict[str, object]] = []
    for piece in pieces:
        made.append(_made(piece, embed(piece.text, f"{piece.change_id}.{piece.piece}")))
        tenant, agent = piece.tenant, piece.agent
        if time.monotonic() > ended:
            break
    if not made:
        return None
    connection.execute(_QUERIES["keep_vectors"], {"embedder": EMBEDDER, "made": Jsonb(made)})
    return tenant, agent


def _made(piece: Any, vector: Vector) -> dict[str, object]:
    return {
        "tenant": piece.tenant,
        "agent": piece.agent,
        "kind": piece.kind,
        "name": piece.name,
        "change_id": str(piece.change_id),
        "piece": piece.piece,
        "prior": piece.prior and str(piece.prior),
        "signs": signs(vector),
        "vector": vector,
    }
