"""The way from a worker to the embedder: a text to a unix socket in a private folder, its vector back."""

from __future__ import annotations

import contextlib
import socket
import socketserver
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

from muniment_server.domain.search.meaning import DIMENSIONS, MOST_CHARS, Embed, Vector

_SECONDS = 0.5
"""How long a query waits for its vector. It takes 20 ms on a core of its own."""
_MOST_WAITING = 64
_MOST_BYTES = 4 * MOST_CHARS


def asking(path: str) -> Embed:
    """An Embed that asks the embedder at *path*. Of one that is not there, or slow, it gets None."""

    def asked(text: str) -> Vector | None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            with contextlib.suppress(OSError):
                connection.connect(path)
                connection.sendall(text.encode())
                connection.shutdown(socket.SHUT_WR)
                return _received(connection)
        return None

    return asked


def _received(connection: socket.socket) -> Vector | None:
    vector = array("h")
    with connection.makefile("rb") as answer:
        vector.frombytes(answer.read(DIMENSIONS * vector.itemsize))
    return vector.tolist() if len(vector) == DIMENSIONS else None


@contextmanager
def answering(path: str, vector: Callable[[str], Vector]) -> Iterator[None]:
    """Answer at *path*, each caller on a thread of its own. At the end, those that have begun are answered."""

    class Answer(socketserver.StreamRequestHandler):
        timeout = _SECONDS

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # who does not wait for the answer gets none
                text = self.rfile.read(_MOST_BYTES).decode("utf-8", "replace")
                self.wfile.write(array("h", vector(text)).tobytes())

    class Answers(socketserver.ThreadingUnixStreamServer):
        request_queue_size = _MOST_WAITING

    with Answers(path, Answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
