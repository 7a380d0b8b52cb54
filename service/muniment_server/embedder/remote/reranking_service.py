"""Has the texts that searches found reranked at an address. Part of the embedder.

Each level has a socket, turns and failures of its own, so that no level waits for a higher one. Levels above the
ceiling have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from muniment_server.domain.classification import Label
from muniment_server.embedder.remote.circuit_breaker import CircuitBreaker
from muniment_server.embedder.remote.configuration import RerankerConfig, reranker_socket
from muniment_server.embedder.remote.reranker import RemoteReranker
from muniment_server.embedder.socket import Order, serve_rerankings

_PROBE_SECONDS = 0.25
"""How long the answer to the probe may take: as long as a search waits."""
_AT_ONCE = 4
"""How many searches of one level are reranked at a time."""


@contextmanager
def reranking(config: RerankerConfig, reranker: RemoteReranker, path: str) -> Iterator[None]:
    """Rerank until the block ends, at sockets beside *path*, the embedder's."""
    with ExitStack() as stack:
        for level in config.levels:
            order = _orders_of(reranker, level, str(config.address))
            stack.enter_context(serve_rerankings(reranker_socket(path, level), order, at_once=_AT_ONCE))
        yield


def _orders_of(reranker: RemoteReranker, level: Label, address: str) -> Order:
    breaker = CircuitBreaker(f"a search was not reranked by {address}")
    return lambda query, texts, seconds: breaker.ask(
        lambda: reranker.order(query, texts, level, seconds),
        probe=lambda: reranker.probe(len(texts), level, _PROBE_SECONDS),
    )
