"""What workers ask the embedder: the embedding of a query, and the order of the texts that it found.

What is for a model at an address goes to sockets of their own, one for each level that may be sent: a higher level
takes no turn of a lower one, and a level above the ceiling has none.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.configuration import MAX_DIMENSIONS, remote_socket, reranker_socket
from muniment_server.embedder.request_socket import SocketClient, serve_requests
from muniment_server.search.embeddings import DIMENSIONS, MAX_CHARS, RemoteVector, Vector, model_number
from muniment_server.search.reranking import MAX_RERANKED, LabeledText, Reranker
from muniment_server.search.search import QueryEmbedder, RemoteQueryEmbedder

_TIMEOUT_SECONDS = 0.5
"""How long a query waits for its embedding, which takes 20 ms on a free core, 200 ms at most."""
_REMOTE_SECONDS = 1.0
"""How long a query waits for its embedding by a model at an address. The embedder waits for the model a little less, so
that it can still report that there is no embedding: a model that is late must not count as an embedder that is down."""
_RERANKING_SECONDS = 0.3
"""How long a search waits for its reranking."""
_MAX_QUEUE_SECONDS = 0.4
"""A query that was queued for longer is dropped: its embedding would mostly arrive too late."""
_MAX_RERANKING_QUEUE_SECONDS = 0.05
_ITEM_BYTES = array("h").itemsize
_VECTOR_BYTES = (1 + MAX_DIMENSIONS) * _ITEM_BYTES
_MAX_QUERY_BYTES = 4 * MAX_CHARS
_MAX_TEXT_CHARS = 1000
"""How many code points of a text are reranked: a chunk of 600, after an author or a key."""
_MAX_JSON_BYTES = 12 * (MAX_CHARS + MAX_RERANKED * _MAX_TEXT_CHARS)
"""The size limit of a request to rerank. JSON takes twelve bytes for a code point at most."""


def query_embedder(path: str) -> QueryEmbedder:
    """A query embedder that uses the process at *path*. It returns None if that is down, slow or overloaded."""
    client = SocketClient(lambda _: path, _TIMEOUT_SECONDS, _VECTOR_BYTES)
    return lambda text, level: _vector(client.ask(text.encode(), level), DIMENSIONS)


def remote_query_embedder(path: str, model: str, ceiling: Classification) -> RemoteQueryEmbedder:
    """The same for the model of that name at an address. None for every level above *ceiling*."""
    client = SocketClient(lambda level: remote_socket(path, level), _REMOTE_SECONDS, _VECTOR_BYTES)

    def embed(text: str, level: Classification) -> RemoteVector | None:
        vector = _vector(client.ask(text.encode(), level)) if level.can_flow_to(ceiling) else None
        return RemoteVector(model_number(model, len(vector)), vector) if vector else None

    return embed


def reranker(path: str, ceiling: Classification) -> Reranker:
    """A reranker up to *ceiling* that uses the process at *path*."""
    client = SocketClient(lambda level: reranker_socket(path, level), _RERANKING_SECONDS, MAX_RERANKED)

    def order(query: str, texts: Sequence[LabeledText], level: Classification) -> Sequence[int] | None:
        request = [query[:MAX_CHARS], *((int(one.level), one.text[:_MAX_TEXT_CHARS]) for one in texts)]
        return list(client.ask(json.dumps(request).encode(), level) or ()) or None

    return Reranker(ceiling, order)


def serve_queries(
    path: str, embed: Callable[[str], Vector | None], *, at_once: int = 1
) -> AbstractContextManager[None]:
    """Serve queries at *path*, *at_once* at a time. If *embed* returns None, the query gets no answer."""

    def answer(query: bytes) -> bytes | None:
        vector = embed(query.decode("utf-8", "replace"))
        return None if vector is None else array("h", [len(vector), *vector]).tobytes()

    return serve_requests(path, answer, max_bytes=_MAX_QUERY_BYTES, queue_seconds=_MAX_QUEUE_SECONDS, at_once=at_once)


def serve_rerankings(
    path: str, order: Callable[[str, Sequence[LabeledText]], Sequence[int] | None], *, at_once: int
) -> AbstractContextManager[None]:
    """The same for texts to rerank. The answer has a byte for each: its index."""

    def answer(request: bytes) -> bytes | None:
        query, *texts = json.loads(request)
        indexes = order(query, [LabeledText(Classification(level), text) for level, text in texts])
        return None if indexes is None else bytes(indexes)

    return serve_requests(
        path,
        answer,
        max_bytes=_MAX_JSON_BYTES,
        queue_seconds=_MAX_RERANKING_QUEUE_SECONDS,
        at_once=at_once,
    )


def _vector(answer: bytes | None, dimensions: int | None = None) -> Vector | None:
    """The vector in an answer: the number of components, and the components.

    None without an answer, or if it is incomplete or has other *dimensions*.
    """
    whole = (answer or b"")[: len(answer or b"") // _ITEM_BYTES * _ITEM_BYTES]
    count, *components = array("h", whole).tolist() or [0]
    return components if count and len(components) == count == (dimensions or count) else None
