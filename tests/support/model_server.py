"""A server of models for tests: it keeps all that it receives, and answers as a test wants."""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


class ModelServer:
    """What a server received, and how it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Mapping[str, str], bytes]] = []
        """The path, the headers and the body of each request."""
        self.url = ""

    def respond(self, handler: BaseHTTPRequestHandler, request: Mapping[str, Any]) -> None:
        """Answer one request."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what asks it."""


def answer_body(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Answer with *body*."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def listening(
    state: ModelServer, path: str, socket: Path | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[None]:
    """Serve on a free port of 127.0.0.1, with *path* in the URL, or at the path *socket*. At a port, with *tls*."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        owner: ClassVar[ModelServer] = state

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.owner.requests.append((self.path, dict(self.headers.items()), body))
            self.owner.respond(self, json.loads(body))

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
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        state.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}{path}"
    else:
        server = _UnixServer(str(socket), Handler)
        state.url = f"unix:{socket}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
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
