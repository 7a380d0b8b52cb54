"""The way from a worker to the embedder: a level and a text to a unix socket in a private folder, its vector back."""

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
from muniment_server.search.embeddings import DIMENSIONS, MAX_CHARS, Vector
from muniment_server.search.search import QueryEmbedder

_LOG = logging.getLogger("muniment.embedder")
_SECONDS = 0.5
"""How long a query waits for its vector. It takes 20 ms on a core of its own, at most 200."""
_SECONDS_IN_QUEUE = 0.4
"""What has waited longer would mostly come too late: it is not computed any more."""
_SECONDS_TO_READ = 0.1
_MOST_WAITING = 8
_MOST_BYTES = 1 + 4 * MAX_CHARS
_TIMEOUTS = 3
_SECONDS_WITHOUT = 1.0
"""How long nobody asks after that many timeouts in a row."""


def asking(path: str) -> QueryEmbedder:
    """A query embedder that asks the embedder at *path*; None if that is away, slow or overloaded."""
    return _Asking(path)


class _Asking:
    """Each level finds out for itself whether there is an answer: what higher ones do tells a lower one nothing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._timeouts = Counter[Classification]()
        self._not_before: dict[Classification, float] = {}

    def __call__(self, text: str, level: Classification) -> Vector | None:
        if time.monotonic() < self._not_before.get(level, 0.0):
            return None
        try:
            vector = self._ask(text, level)
        except TimeoutError:
            self._timeouts[level] += 1
            if self._timeouts[level] >= _TIMEOUTS:
                self._not_before[level] = time.monotonic() + _SECONDS_WITHOUT
            return None
        except OSError:  # away, which costs no time
            return None
        self._timeouts[level] = 0
        return vector

    def _ask(self, text: str, level: Classification) -> Vector | None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(self._path)
            connection.sendall(bytes([level]) + text.encode())
            connection.shutdown(socket.SHUT_WR)
            answer = _received(connection, DIMENSIONS * array("h").itemsize)
        vector = array("h", answer) if len(answer) == DIMENSIONS * array("h").itemsize else None
        return vector and vector.tolist()


def _received(connection: socket.socket, most: int) -> bytes:
    with connection.makefile("rb") as stream:
        return stream.read(most)


@dataclass(frozen=True, order=True)
class _Query:
    level: int
    since: float
    text: str = field(compare=False)
    connection: socket.socket = field(compare=False)


class _Queue:
    """A few queries: the lowest level first, its eldest first. When it is full, the last is turned away at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queries: list[_Query] = []
        self._closed = False

    def put(self, query: _Query) -> None:
        with self._changed:
            insort(self._queries, query)
            for last in self._queries[_MOST_WAITING:]:
                last.connection.close()
            del self._queries[_MOST_WAITING:]
            self._changed.notify()

    def take(self) -> _Query | None:
        """The next one, waited for. None: there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._queries or self._closed)
            return self._queries.pop(0) if self._queries else None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()


@contextmanager
def answering(path: str, vector: Callable[[str], Vector]) -> Iterator[None]:
    """Answer at *path*, one query at a time. At the end, those that wait are answered."""
    queue, ended = _Queue(), threading.Event()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        listening.settimeout(0.05)  # as often it is looked whether it ended
        threads = [
            threading.Thread(target=_receive, args=(listening, queue, ended), daemon=True),
            threading.Thread(target=_answer, args=(queue, vector), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            threads[0].join()
            queue.close()
            threads[1].join()


def _receive(listening: socket.socket, queue: _Queue, ended: threading.Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(OSError):  # who breaks off is gone
            connection, _ = listening.accept()
            try:
                connection.settimeout(_SECONDS_TO_READ)
                level, *text = _received(connection, _MOST_BYTES) or b"\0"
            except OSError:
                connection.close()
                raise
            queue.put(_Query(level, time.monotonic(), bytes(text).decode("utf-8", "replace"), connection))


def _answer(queue: _Queue, vector: Callable[[str], Vector]) -> None:
    while (query := queue.take()) is not None:
        with query.connection:
            if time.monotonic() - query.since > _SECONDS_IN_QUEUE:
                continue
            try:
                query.connection.sendall(array("h", vector(query.text)).tobytes())
            except OSError:  # it did not wait
                pass
            except Exception as error:  # noqa: BLE001 - the next one is answered all the same
                _LOG.error("a query has no vector: %s", type(error).__name__)
