"""A server of `/v1/embeddings` for tests."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from muniment_server.domain.classification import Classification
from muniment_server.embedder.remote.configuration import RemoteConfig
from muniment_server.embedder.remote.everyday_sentences import SENTENCES
from muniment_server.embedder.remote.model import RemoteModel
from tests.support.embedders import quick
from tests.support.model_server import ModelServer, answer_body, listening

ALIKE = {"feline": "cat", "vessel": "ship"}
"""Words that the model of the server treats as equal. They differ from those of the built-in model of tests."""


def embedding(text: str) -> Sequence[float]:
    """The server's embedding of a text."""
    return quick(text, ALIKE)


class EmbeddingServer(ModelServer):
    """What a server received, and how it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Callable[[BaseHTTPRequestHandler, Sequence[str]], None] = answer_well
        """Answers a request for the embeddings of these texts."""
        self._models: list[RemoteModel] = []

    @property
    def texts(self) -> list[str]:
        """The texts that were received, but for those that every model is asked for first."""
        return [text for _, _, body in self.requests for text in json.loads(body)["input"] if text not in SENTENCES]

    def config(self, ceiling: Classification = Classification.RESTRICTED, model: str = "stub") -> RemoteConfig:
        """The configuration of a server that uses this one."""
        return RemoteConfig(self.url, model, ceiling)

    def model(self, ceiling: Classification = Classification.RESTRICTED) -> RemoteModel:
        """Its model, calibrated."""
        model = self.new_model(ceiling)
        model.calibrate()
        return model

    def new_model(
        self, ceiling: Classification = Classification.RESTRICTED, key_file: Path | None = None
    ) -> RemoteModel:
        """Its model. It is closed with the server."""
        config = self.config(ceiling)
        model = RemoteModel(RemoteConfig(config.url, config.model, config.ceiling, key_file))
        self._models.append(model)
        return model

    def respond(self, handler: BaseHTTPRequestHandler, request: Mapping[str, Any]) -> None:
        self.answer(handler, request["input"])

    def close(self) -> None:
        """Close the models."""
        for model in self._models:
            model.close()


def answer_well(handler: BaseHTTPRequestHandler, texts: Sequence[str]) -> None:
    """Answer as the interface says."""
    answer_with(handler, list(map(embedding, texts)))


def answer_with(handler: BaseHTTPRequestHandler, vectors: Sequence[Any], **headers: str) -> None:
    """Answer with *vectors*, the last one first: the interface numbers them."""
    data = [{"object": "embedding", "index": n, "embedding": one} for n, one in enumerate(vectors)]
    answer_body(handler, json.dumps({"object": "list", "data": data[::-1], "model": "stub"}).encode(), 200, **headers)


@contextmanager
def embedding_server(socket: Path | None = None, tls: ssl.SSLContext | None = None) -> Iterator[EmbeddingServer]:
    """A server on a free port of 127.0.0.1, with *tls* if given, or at the path *socket*."""
    state = EmbeddingServer()
    with listening(state, "/v1", socket, tls):
        yield state
