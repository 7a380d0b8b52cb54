"""A server of `/v1/embeddings` for tests: it keeps all that it receives, and answers as a test wants."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from muniment_server.domain.classification import Classification
from muniment_server.runtime.everyday_sentences import SENTENCES
from muniment_server.runtime.remote_configuration import RemoteConfig
from muniment_server.runtime.remote_model import RemoteModel
from tests.support.embedders import quick

ALIKE = {"feline": "cat", "vessel": "ship"}
"""Words that the model of the server treats as equal. They differ from those of the built-in model of tests."""


def embedding(text: str) -> Sequence[float]:
    """The server's embedding of a text."""
    return quick(text, ALIKE)


class EmbeddingServer:
    """What a server received, and how it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Mapping[str, str], bytes]] = []
        """The path, the headers and the body of each request."""
        self.answer: Callable[[BaseHTTPRequestHandler, Sequence[str]], None] = answer_well
        """Answers a request for the embeddings of these texts."""
        self.url = ""
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


def answer_body(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Answer with *body*."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def embedding_server(socket: Path | None = None) -> Iterator[EmbeddingServer]:
    """A server on a free port of 127.0.0.1, or at the path *socket*."""
    state = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        owner: ClassVar[EmbeddingServer] = state

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.owner.requests.append((self.path, dict(self.headers.items()), body))
            self.owner.answer(self, json.loads(body)["input"])

        def address_string(self) -> str:
            return ""

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client has gone: some tests want that
                self.close_connection = True

    server: socketserver.BaseServer
    if socket is None:
        server = _Server(("127.0.0.1", 0), Handler)
        state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    else:
        server = _UnixServer(str(socket), Handler)
        state.url = f"unix:{socket}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.close()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
