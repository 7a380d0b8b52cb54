"""How workers ask the embedder: they send a level and a request to a Unix socket, and receive an answer."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from muniment_server.domain.classification import Classification

_LOG = logging.getLogger("muniment.embedder")
_RECEIVE_SECONDS = 0.1
_ACCEPT_SECONDS = 0.05
"""How often the server checks whether to stop."""
_PART_BYTES = 64 * 1024
_MAX_QUEUED = 8
_MAX_TIMEOUTS = 3
_BACKOFF_SECONDS = 1.0
"""How long a level sends no requests after that many timeouts in a row."""


class SocketClient:
    """Counts timeouts separately for each level: a low level must learn nothing from requests of higher ones."""

    def __init__(self, path_of: Callable[[Classification], str], seconds: float, max_bytes: int) -> None:
        """*path_of*: the socket for requests of a level. *max_bytes*: of an answer."""
        self._path_of = path_of
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._timeouts = Counter[Classification]()
        self._not_before: dict[Classification, float] = {}

    def ask(self, request: bytes, level: Classification) -> bytes | None:
        """The answer to a request of *level*. None if no answer came in time; empty if the embedder gave none."""
        if time.monotonic() < self._not_before.get(level, 0.0):
            return None
        try:
            answer = self._send(request, level)
        except TimeoutError:
            self._timeouts[level] += 1
            if self._timeouts[level] >= _MAX_TIMEOUTS:
                self._not_before[level] = time.monotonic() + _BACKOFF_SECONDS
            return None
        except OSError:  # no embedder is running; this fails at once, so no backoff is needed
            return None
        self._timeouts[level] = 0
        return answer

    def _send(self, request: bytes, level: Classification) -> bytes:
        end = time.monotonic() + self._seconds
        with socket.socket(socket.AF_UNIX) as connection:
            _end_at(end, connection)
            connection.connect(self._path_of(level))
            _end_at(end, connection)
            connection.sendall(bytes([level]) + request)
            connection.shutdown(socket.SHUT_WR)
            return _receive(connection, self._max_bytes, end)


def _receive(connection: socket.socket, max_bytes: int, end: float) -> bytes:
    """What arrives until the other side ends, up to *max_bytes*. Raises TimeoutError at *end*."""
    received = bytearray()
    while len(received) < max_bytes:
        _end_at(end, connection)
        if not (part := connection.recv(min(_PART_BYTES, max_bytes - len(received)))):
            break
        received += part
    return bytes(received)


def _end_at(end: float, connection: socket.socket) -> None:
    """Let the next step take until *end*. Raises TimeoutError afterwards."""
    if (left := end - time.monotonic()) <= 0:
        raise TimeoutError
    connection.settimeout(left)


@dataclass(frozen=True, order=True)
class _Request:
    level: int
    queued_at: float
    body: bytes = field(compare=False)
    connection: socket.socket = field(compare=False)


class _Queue:
    """A short queue of requests: lowest level first, then oldest first. When it is full, the last one is rejected."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: list[_Request] = []
        self._closed = False

    def put(self, request: _Request) -> None:
        with self._changed:
            insort(self._requests, request)
            for rejected in self._requests[_MAX_QUEUED:]:
                rejected.connection.close()
            del self._requests[_MAX_QUEUED:]
            self._changed.notify()

    def take(self) -> _Request | None:
        """Wait for the next request. None once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests or self._closed)
            return self._requests.pop(0) if self._requests else None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@contextmanager
def serve_requests(
    path: str, answer: Callable[[bytes], bytes | None], *, max_bytes: int, queue_seconds: float, at_once: int = 1
) -> Iterator[None]:
    """Answer requests of up to *max_bytes* at *path*, *at_once* at a time.

    One that was queued for longer than *queue_seconds* is dropped; one for which *answer* returns None gets no answer.
    At the end, queued requests are still answered.
    """
    queue, stopping = _Queue(), threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(_ACCEPT_SECONDS)
        threads = [
            threading.Thread(target=_accept_requests, args=(listener, queue, stopping, max_bytes), daemon=True),
            *(
                threading.Thread(target=_answer_requests, args=(queue, answer, queue_seconds), daemon=True)
                for _ in range(at_once)
            ),
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


def _accept_requests(listener: socket.socket, queue: _Queue, stopping: threading.Event, max_bytes: int) -> None:
    while not stopping.is_set():
        with contextlib.suppress(OSError):  # no connection yet, or the client has disconnected
            connection, _ = listener.accept()
            try:
                received = _receive(connection, 1 + max_bytes, time.monotonic() + _RECEIVE_SECONDS) or b"\0"
            except OSError:
                connection.close()
                raise
            connection.settimeout(_RECEIVE_SECONDS)
            queue.put(_Request(received[0], time.monotonic(), received[1:], connection))


def _answer_requests(queue: _Queue, answer: Callable[[bytes], bytes | None], queue_seconds: float) -> None:
    while (request := queue.take()) is not None:
        with request.connection:
            if time.monotonic() - request.queued_at > queue_seconds:
                continue
            try:
                if (answered := answer(request.body)) is not None:
                    request.connection.sendall(answered)
            except OSError:  # the client has disconnected
                pass
            except Exception as error:  # noqa: BLE001 - the next request must still be answered
                _LOG.error("cannot answer a search: %s", type(error).__name__)
