"""What workers ask the embedder, by gRPC: the embedding of a query, and the order of the texts that it found.

Each level has sockets of its own: for the built-in model, the model at an address and the reranker. So no level takes
the turns of another, and what may not be sent to an address has no socket. Messages are JSON. A method whose messages
change gets another name: after an upgrade, a worker may ask an embedder of another version.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeAlias

import grpc

from muniment_server.domain.classification import Classification, Label
from muniment_server.embedder.remote.configuration import query_socket, remote_socket, reranker_socket
from muniment_server.search.embeddings import DIMENSIONS, MAX_CHARS, RemoteVector, Vector, model_number
from muniment_server.search.reranking import LabeledText, Reranker
from muniment_server.search.search import PendingRemoteVector, PendingVector, QueryEmbedder, RemoteQueryEmbedder

_LOG = logging.getLogger("muniment.embedder")
_TIMEOUT_SECONDS = 0.5
"""How long a query waits for its embedding, which takes 5 ms on a free core, 30 ms at most."""
_REMOTE_SECONDS = 1.0
"""How long a query waits for its embedding by a model at an address."""
_RERANKING_SECONDS = 0.3
"""How long a search waits for its reranking."""
_MAX_WAITING = 64
"""How many threads wait for embeddings of one level's queries."""
_MARGIN_SECONDS = 0.05
"""How long before the worker's deadline the embedder has its answer. What has waited until then is dropped."""
_MAX_QUEUED = 8
"""How many requests wait at a socket. Another one is refused at once."""
_STOP_SECONDS = 1.0
_MAX_TEXT_CHARS = 1000
"""How many code points of a text are reranked: a chunk of 600, after an author or a key."""
_SERVICE, _EMBED, _RERANK = "muniment.Embedder", "Embed", "Rerank"
_CHANNEL_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000))
"""An embedder that was replaced is asked again a second later. Until then, requests fail at once."""

Embed: TypeAlias = Callable[[str, float], Vector | None]
"""Embeds a query within a number of seconds. None if there is no embedding."""
Order: TypeAlias = Callable[[str, Sequence[LabeledText], float], Sequence[int] | None]
"""Orders the texts that a query found, within a number of seconds: their indexes. None if there is no order."""


class _Client:
    """Asks the embedder by one method. Each level has a socket, whose path *path_of* returns."""

    def __init__(self, method: str, path_of: Callable[[Label], str]) -> None:
        self._methods = {level: _method_at(path_of(level), method) for level in Label}
        self._threads = {level: ThreadPoolExecutor(_MAX_WAITING) for level in Label}

    def ask(self, request: object, level: Label, seconds: float) -> Sequence[int]:
        """The answer to a request of *level* within *seconds*. Empty if there is none."""
        try:
            answer: Sequence[int] = self._methods[level](request, timeout=seconds)
        except grpc.RpcError:  # too late, refused, or no embedder is running
            return ()
        return answer

    def start(self, request: object, level: Label, seconds: float) -> Callable[[], Sequence[int]]:
        """Ask in another thread. Returns a function that waits for the answer.

        Not by gRPC's own futures: if their thread cannot start, the channel breaks and its callers wait forever.
        """
        deadline = time.monotonic() + seconds

        def ask_in_time() -> Sequence[int]:
            return self.ask(request, level, deadline - time.monotonic())

        try:
            return self._threads[level].submit(ask_in_time).result
        except RuntimeError:  # no thread could be started; the request stays queued, and expires if it is late
            return lambda: ()


def query_embedder(path: str) -> QueryEmbedder:
    """A query embedder that uses the process at *path*. There is no embedding if that is down, slow or overloaded."""
    client = _Client(_EMBED, lambda level: query_socket(path, level))

    def embed(text: str, level: Label) -> PendingVector:
        pending = client.start(text[:MAX_CHARS], level, _TIMEOUT_SECONDS)
        return lambda: vector if len(vector := pending()) == DIMENSIONS else None

    return embed


def remote_query_embedder(path: str, model: str, ceiling: Classification) -> RemoteQueryEmbedder:
    """The same for the model of that name at an address, which no level above *ceiling* asks."""
    client = _Client(_EMBED, lambda level: remote_socket(path, level))

    def embed(text: str, level: Label) -> PendingRemoteVector | None:
        if not level.level.can_flow_to(ceiling):
            return None
        pending = client.start(text[:MAX_CHARS], level, _REMOTE_SECONDS)
        return lambda: RemoteVector(model_number(model, len(vector)), vector) if (vector := pending()) else None

    return embed


def reranker(path: str, ceiling: Classification) -> Reranker:
    """A reranker up to *ceiling* that uses the process at *path*."""
    client = _Client(_RERANK, lambda level: reranker_socket(path, level))

    def order(query: str, texts: Sequence[LabeledText], level: Label) -> Sequence[int] | None:
        request = [query[:MAX_CHARS], *((one.level.value, one.text[:_MAX_TEXT_CHARS]) for one in texts)]
        return client.ask(request, level, _RERANKING_SECONDS) or None

    return Reranker(ceiling, order)


@contextmanager
def serve_built_in(path: str, embed: Callable[[str], Vector]) -> Iterator[None]:
    """Embed the queries of each level, one at a time. No level waits for another."""
    with ExitStack() as stack:
        for level in Label:
            stack.enter_context(serve_queries(query_socket(path, level), lambda text, _: embed(text)))
        yield


def serve_queries(path: str, embed: Embed, *, at_once: int = 1) -> AbstractContextManager[None]:
    """Embed the queries of one level at *path*, *at_once* at a time, until the block ends."""
    return _serving(path, _EMBED, embed, at_once)


def serve_rerankings(path: str, order: Order, *, at_once: int) -> AbstractContextManager[None]:
    """The same for texts to rerank."""

    def answer(request: Any, seconds: float) -> Sequence[int] | None:
        query, *texts = request
        return order(query, [LabeledText(Label(level), text) for level, text in texts], seconds)

    return _serving(path, _RERANK, answer, at_once)


def _method_at(path: str, method: str) -> Any:
    return grpc.insecure_channel(f"unix:{path}", _CHANNEL_OPTIONS).unary_unary(
        f"/{_SERVICE}/{method}", _to_json, json.loads
    )


@contextmanager
def _serving(
    path: str, method: str, answer: Callable[[Any, float], Sequence[int] | None], at_once: int
) -> Iterator[None]:
    """Answer requests at *path*, *at_once* at a time. At the end, those that wait are still answered."""

    def answer_or_nothing(request: Any, context: grpc.ServicerContext) -> Sequence[int]:
        seconds = (context.time_remaining() or 0.0) - _MARGIN_SECONDS
        try:
            return (answer(request, seconds) if seconds > 0 else None) or ()
        except Exception as error:  # noqa: BLE001 - its text may contain the query, which gRPC would log
            _LOG.error("cannot answer a search: %s", type(error).__name__)
            return ()

    handler = grpc.unary_unary_rpc_method_handler(answer_or_nothing, json.loads, _to_json)
    with ThreadPoolExecutor(at_once) as threads:
        server = grpc.server(threads, maximum_concurrent_rpcs=at_once + _MAX_QUEUED)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {method: handler}),))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        try:
            yield
        finally:
            server.stop(_STOP_SECONDS).wait()


def _to_json(message: object) -> bytes:
    return json.dumps(message).encode()
