"""How workers query the embedder: they send a level and a text to a Unix socket, and receive the embedding.

Queries for a model at an address go to sockets of their own, one for each level that may be sent: a higher level takes
no turn of a lower one, and a level above the ceiling has none.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from array import array
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from muniment_server.domain.classification import Classification
from muniment_server.runtime.remote_configuration import MAX_DIMENSIONS, remote_socket
from muniment_server.search.embeddings import DIMENSIONS, MAX_CHARS, RemoteVector, Vector, model_number
from muniment_server.search.search import QueryEmbedder, RemoteQueryEmbedder

_LOG = logging.getLogger("muniment.embedder")
_TIMEOUT_SECONDS = 0.5
"""How long a query waits for its embedding, which takes 20 ms on a free core, 200 ms at most."""
REMOTE_SECONDS = 1.0
"""How long a query waits for its embedding by a model at an address."""
_MAX_QUEUE_SECONDS = 0.4
"""A query that was queued for longer is dropped: its embedding would mostly arrive too late."""
_RECEIVE_SECONDS = 0.1
_ACCEPT_SECONDS = 0.05
"""How often the server checks whether to stop."""
_MAX_QUEUED = 8
_MAX_QUERY_BYTES = 1 + 4 * MAX_CHARS
_ITEM_BYTES = array("h").itemsize
_MAX_TIMEOUTS = 3
_BACKOFF_SECONDS = 1.0
"""How long a level sends no queries after that many timeouts in a row."""


def query_embedder(path: str) -> QueryEmbedder:
    """A query embedder that uses the process at *path*. It returns None if that is down, slow or overloaded."""
    return _Client(lambda _: path, _TIMEOUT_SECONDS, DIMENSIONS)


def remote_query_embedder(path: str, model: str, ceiling: Classification) -> RemoteQueryEmbedder:
    """The same for the model of that name at an address. None for every level above *ceiling*."""
    client = _Client(lambda level: remote_socket(path, level), REMOTE_SECONDS)

    def embed(text: str, level: Classification) -> RemoteVector | None:
        vector = client(text, level) if level.can_flow_to(ceiling) else None
        return RemoteVector(model_number(model, len(vector)), vector) if vector else None

    return embed


class _Client:
    """Counts timeouts separately for each level: a low level must learn nothing from queries of higher ones."""

    def __init__(self, path_of: Callable[[Classification], str], seconds: float, dimensions: int | None = None) -> None:
        self._path_of = path_of
        self._seconds = seconds
        self._dimensions = dimensions
        self._timeouts = Counter[Classification]()
        self._not_before: dict[Classification, float] = {}

    def __call__(self, text: str, level: Classification) -> Vector | None:
        if time.monotonic() < self._not_before.get(level, 0.0):
            return None
        try:
            vector = self._send(text, level)
        except TimeoutError:
            self._timeouts[level] += 1
            if self._timeouts[level] >= _MAX_TIMEOUTS:
                self._not_before[level] = time.monotonic() + _BACKOFF_SECONDS
            return None
        except OSError:  # no embedder is running; this fails at once, so no backoff is needed
            return None
        self._timeouts[level] = 0
        return vector

    def _send(self, text: str, level: Classification) -> Vector | None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(self._seconds)
            connection.connect(self._path_of(level))
            connection.sendall(bytes([level]) + text.encode())
            connection.shutdown(socket.SHUT_WR)
            return _vector(_receive(connection, (1 + MAX_DIMENSIONS) * _ITEM_BYTES), self._dimensions)


def _answer(vector: Vector) -> bytes:
    """The number of components, and the components."""
    return array("h", [len(vector), *vector]).tobytes()


def _vector(answer: bytes, dimensions: int | None) -> Vector | None:
    """The vector in an answer. None if that is empty, incomplete, or has other *dimensions*."""
    count, *components = array("h", answer[: len(answer) // _ITEM_BYTES * _ITEM_BYTES]).tolist() or [0]
    return components if count and len(components) == count == (dimensions or count) else None


def _receive(connection: socket.socket, max_bytes: int) -> bytes:
    with connection.makefile("rb") as stream:
        return stream.read(max_bytes)


@dataclass(frozen=True, order=True)
class _Query:
    level: int
    queued_at: float
    text: str = field(compare=False)
    connection: socket.socket = field(compare=False)


class _Queue:
    """A short queue of queries: lowest level first, then oldest first. When it is full, the last one is rejected."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queries: list[_Query] = []
        self._closed = False

    def put(self, query: _Query) -> None:
        with self._changed:
            insort(self._queries, query)
            for rejected in self._queries[_MAX_QUEUED:]:
                rejected.connection.close()
            del self._queries[_MAX_QUEUED:]
            self._changed.notify()

    def take(self) -> _Query | None:
        """Wait for the next query. None once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._queries or self._closed)
            return self._queries.pop(0) if self._queries else None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@contextmanager
def serve_queries(path: str, embed: Callable[[str], Vector | None], *, at_once: int = 1) -> Iterator[None]:
    """Serve queries at *path*, *at_once* at a time. At the end, queued queries are still answered.

    If *embed* returns None, the query gets no answer.
    """
    queue, stopping = _Queue(), threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(_ACCEPT_SECONDS)
        threads = [
            threading.Thread(target=_accept_queries, args=(listener, queue, stopping), daemon=True),
            *(threading.Thread(target=_answer_queries, args=(queue, embed), daemon=True) for _ in range(at_once)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            threads[0].join()
            queue.close()
            for thread in threads[1:]:
                thread.join()


def _accept_queries(listener: socket.socket, queue: _Queue, stopping: threading.Event) -> None:
    while not stopping.is_set():
        with contextlib.suppress(OSError):  # no connection yet, or the client has disconnected
            connection, _ = listener.accept()
            try:
                connection.settimeout(_RECEIVE_SECONDS)
                level, *text = _receive(connection, _MAX_QUERY_BYTES) or b"\0"
            except OSError:
                connection.close()
                raise
            queue.put(_Query(level, time.monotonic(), bytes(text).decode("utf-8", "replace"), connection))


def _answer_queries(queue: _Queue, embed: Callable[[str], Vector | None]) -> None:
    while (query := queue.take()) is not None:
        with query.connection:
            if time.monotonic() - query.queued_at > _MAX_QUEUE_SECONDS:
                continue
            try:
                if (vector := embed(query.text)) is not None:
                    query.connection.sendall(_answer(vector))
            except OSError:  # the client has disconnected
                pass
            except Exception as error:  # noqa: BLE001 - the next query must still be answered
                _LOG.error("cannot embed a query: %s", type(error).__name__)
