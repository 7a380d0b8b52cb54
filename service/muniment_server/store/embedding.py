"""What the embedder does at one level: it reads what waits for a vector, and writes the vectors. See embedding.sql."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from muniment_server.domain.search.meaning import EMBEDDER, Vector, signs
from muniment_server.store import queries

_QUERIES = queries.load("embedding")
_BATCH = 16
"""Pieces. They take about half a second: as long a higher level may keep a lower one waiting."""


def embed_some(connection: psycopg.Connection[Any], vector: Callable[[str], Vector]) -> int:
    """Give some waiting pieces of the connection's level their vectors; return how many waited, 0 when none."""
    pieces = connection.execute(_QUERIES["waiting_pieces"], {"most": _BATCH}).fetchall()
    if pieces:
        made = [_made(piece, vector(piece.text)) for piece in pieces]
        connection.execute(_QUERIES["keep_vectors"], {"embedder": EMBEDDER, "made": Jsonb(made)})
    return len(pieces)


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
