"""Has the texts that searches found reranked at an address. Part of the embedder.

Each level has a socket, turns and failures of its own, so that no level waits for a higher one. Levels above the
ceiling have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.circuit_breaker import CircuitBreaker
from muniment_server.embedder.remote.configuration import RerankerConfig, reranker_socket
from muniment_server.embedder.remote.reranker import RemoteReranker
from muniment_server.embedder.socket import serve_rerankings
from muniment_server.search.reranking import LabeledText

_SECONDS = 0.25
"""How long the answer may take. Workers wait for a little longer."""
_AT_ONCE = 4
"""How many searches of one level are reranked at a time."""


@contextmanager
def reranking(config: RerankerConfig, reranker: RemoteReranker, path: str) -> Iterator[None]:
    """Rerank until the block ends, at sockets beside *path*, the embedder's."""
    with ExitStack() as stack:
        for level in config.levels:
            socket = reranker_socket(path, level)
            Path(socket).unlink(missing_ok=True)  # left by an embedder that was killed
            order = _orders_of(reranker, level, str(config.address))
            stack.enter_context(serve_rerankings(socket, order, at_once=_AT_ONCE))
        yield


def _orders_of(
    reranker: RemoteReranker, level: Classification, address: str
) -> Callable[[str, Sequence[LabeledText]], Sequence[int] | None]:
    breaker = CircuitBreaker(f"a search was not reranked by {address}")
    return lambda query, texts: breaker.ask(
        lambda: reranker.order(query, texts, level, _SECONDS),
        probe=lambda: reranker.probe(len(texts), level, _SECONDS),
    )
