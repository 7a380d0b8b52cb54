"""A server of `/rerank` for tests: by default, it prefers texts with more exclamation marks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.configuration import RerankerConfig
from muniment_server.embedder.remote.reranker import RemoteReranker
from tests.support.model_server import ModelServer, answer_body, listening


class RerankingServer(ModelServer):
    """What a server received, and how it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Callable[[BaseHTTPRequestHandler, str, Sequence[str]], None] = rerank_well
        """Answers a request for the scores of these texts for a query."""
        self._rerankers: list[RemoteReranker] = []

    @property
    def asked(self) -> list[tuple[str, list[str]]]:
        """The query and the texts of each request."""
        return [(request["query"], texts_of(request)) for _, _, body in self.requests for request in [json.loads(body)]]

    def config(self, ceiling: Classification = Classification.RESTRICTED, **options: Any) -> RerankerConfig:
        """The configuration of a server that uses this one."""
        return RerankerConfig(self.url, options.pop("model", ""), ceiling, **options)

    def reranker(self, ceiling: Classification = Classification.RESTRICTED, **options: Any) -> RemoteReranker:
        """Its reranker. It is closed with the server."""
        self._rerankers.append(RemoteReranker(self.config(ceiling, **options)))
        return self._rerankers[-1]

    def respond(self, handler: BaseHTTPRequestHandler, request: Mapping[str, Any]) -> None:
        self.answer(handler, request["query"], texts_of(request))

    def close(self) -> None:
        """Close the rerankers."""
        for reranker in self._rerankers:
            reranker.close()


def texts_of(request: Mapping[str, Any]) -> list[str]:
    """The texts of a request, in either form of it."""
    return list(request["texts"] if "texts" in request else request["documents"])


def rerank_well(handler: BaseHTTPRequestHandler, _: str, texts: Sequence[str]) -> None:
    """Answer as the interface says."""
    answer_scores(handler, [float(text.count("!")) for text in texts])


def answer_scores(handler: BaseHTTPRequestHandler, scores: Sequence[Any]) -> None:
    """Answer with *scores*, the best first, as Text Embeddings Inference does."""
    best = sorted(range(len(scores)), key=lambda index: str(scores[index]), reverse=True)
    answer_body(handler, json.dumps([{"index": index, "score": scores[index]} for index in best]).encode())


@contextmanager
def reranking_server(socket: Path | None = None) -> Iterator[RerankingServer]:
    """A server on a free port of 127.0.0.1, or at the path *socket*."""
    state = RerankingServer()
    with listening(state, "", socket):
        yield state
