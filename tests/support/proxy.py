"""A small proxy before a database, which can hold back or lose what is sent through it."""

from __future__ import annotations

import enum
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close at once, with a reset."""
_MOST_BYTES = 65536


class Direction(enum.Enum):
    """Which way bytes go."""

    REQUESTS = enum.auto()
    """To the database."""
    ANSWERS = enum.auto()
    """From the database."""


HELD = ((Direction.REQUESTS,), (Direction.ANSWERS,), (Direction.REQUESTS, Direction.ANSWERS))
"""What a partition can hold back."""
ENDINGS = ("late", "lost", "forgotten")
"""What was held back arrives after all; it is lost, and both sides learn it; the database does not learn it."""


class _Link:
    """One connection through the proxy: its two sides, and what of it flows."""

    def __init__(self, server: socket.socket, database: socket.socket, held: frozenset[Direction]) -> None:
        self._server = server
        self._database = database
        self._change = threading.Condition()
        self._held = held
        self._lost = False
        self.threads = [
            threading.Thread(target=self._pump, args=[server, database, Direction.REQUESTS], daemon=True),
            threading.Thread(target=self._pump, args=[database, server, Direction.ANSWERS], daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def hold(self, held: frozenset[Direction]) -> None:
        """Hold back what goes in the directions of *held*, and let the rest go on, with what was held back."""
        with self._change:
            self._held = held
            self._change.notify_all()

    def lose(self) -> None:
        """Reset both sides, and drop what is held back."""
        with self._change:
            self._lost = True
            self._change.notify_all()
        _reset(self._server)
        _reset(self._database)

    def lose_server(self) -> None:
        """Reset the server's side alone: the database does not hear that its client is gone."""
        self.hold(frozenset(Direction))
        _reset(self._server)

    def _pump(self, source: socket.socket, sink: socket.socket, direction: Direction) -> None:
        with suppress(OSError):
            while data := _received(source):
                if not self._may_pass(direction):
                    return
                sink.sendall(data)
        if self._may_pass(direction):  # the end of a stream does not pass a partition either
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)

    def _may_pass(self, direction: Direction) -> bool:
        with self._change:
            self._change.wait_for(lambda: self._lost or direction not in self._held)
            return not self._lost


class Proxy:
    """Listens on a port of this machine, and connects each caller to the Postgres at *address*."""

    def __init__(self, address: Path | int) -> None:
        self._address = address
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self._held: frozenset[Direction] = frozenset()
        self._links: list[_Link] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @contextmanager
    def holding(self, *directions: Direction) -> Iterator[None]:
        """Hold back everything in *directions*, of new connections too. After the block it arrives late."""
        self._hold(frozenset(directions))
        try:
            yield
        finally:
            self._hold(frozenset())

    def lose(self) -> None:
        """Reset every connection. What is held back is lost."""
        for link in self._taken():
            link.lose()

    @contextmanager
    def ghosts(self) -> Iterator[None]:
        """Reset the server's side of every connection. The database does not hear of it within the block."""
        links = self._taken()
        for link in links:
            link.lose_server()
        try:
            yield
        finally:
            for link in links:
                link.lose()

    def close(self) -> None:
        """Stop, and lose all connections."""
        _reset(self._listener)
        self._thread.join()
        self.lose()

    def _hold(self, held: frozenset[Direction]) -> None:
        with self._lock:
            self._held = held
            for link in self._links:
                link.hold(held)

    def _taken(self) -> list[_Link]:
        with self._lock:
            links, self._links = self._links, []
            return links

    def _accept(self) -> None:
        while True:
            try:
                server, _ = self._listener.accept()
            except OSError:
                return
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                database = _connected(self._address)
            except OSError:
                _reset(server)
                continue
            with self._lock:
                self._links.append(_Link(server, database, self._held))


@contextmanager
def running_proxy(address: Path | int) -> Iterator[Proxy]:
    """A proxy to the Postgres behind a Unix socket, or at a port of this machine."""
    proxy = Proxy(address)
    try:
        yield proxy
    finally:
        proxy.close()


def _connected(address: Path | int) -> socket.socket:
    if isinstance(address, int):
        database = socket.create_connection(("127.0.0.1", address))
        database.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return database
    database = socket.socket(socket.AF_UNIX)
    database.connect(str(address))
    return database


def _received(source: socket.socket) -> bytes:
    """What came next; nothing if the stream ended, or broke."""
    try:
        return source.recv(_MOST_BYTES)
    except OSError:
        return b""


def _reset(side: socket.socket) -> None:
    """Close with a reset. A thread that waits for *side* goes on."""
    with suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    with suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)
    side.close()
