"""A server that leaves takes no new connections and keeps those it has. The rest is in tests/faults/test_reload.py."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from muniment_server.transport import leaving
from tests.faults.processes import wait_until

_SO_GET_FILTER, _SO_LOCK_FILTER = 26, 44
_FILTER_BYTES = 256


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket that listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_connection_that_waits_is_accepted_and_waited_for(listener, monkeypatch):
    was_accepted = threading.Event()  # instead of half a second, in which a busy machine may not come to it
    monkeypatch.setattr(leaving, "_ACCEPT_SECONDS", 60.0)
    monkeypatch.setattr(leaving, "time", SimpleNamespace(monotonic=time.monotonic, sleep=was_accepted.wait))
    address = listener.getsockname()
    thread = threading.Thread(target=leaving.leave, args=[address[1]], kwargs={"seconds": 60.0})
    with socket.create_connection(address) as before:
        thread.start()
        wait_until(lambda: _has_filter(listener), "new connections are dropped")
        with pytest.raises(TimeoutError):
            socket.create_connection(address, timeout=0.2)  # dropped, not refused: it is repeated, and reaches others
        accepted, _ = listener.accept()
        with accepted:
            was_accepted.set()
            wait_until(lambda: not _listens(listener), "it listens no more")
            before.sendall(b"x")
            assert accepted.recv(1) == b"x"
            assert thread.is_alive()
    thread.join(30.0)
    assert not thread.is_alive()


def _has_filter(listener: socket.socket) -> bool:
    return bool(listener.getsockopt(socket.SOL_SOCKET, _SO_GET_FILTER, _FILTER_BYTES))


def _listens(listener: socket.socket) -> bool:
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def test_it_waits_no_longer_than_asked_and_keeps_no_descriptors(listener):
    with socket.create_connection(listener.getsockname()):
        leaving.leave(listener.getsockname()[1], seconds=1.0)

    assert _descriptors_of(listener) == [listener.fileno()]


def test_it_leaves_also_where_the_kernel_attaches_no_filter(listener):
    """As some kernels do to all but root."""
    listener.setsockopt(socket.SOL_SOCKET, _SO_LOCK_FILTER, 1)

    leaving.leave(listener.getsockname()[1], seconds=1.0)

    assert not _listens(listener)


def _descriptors_of(listener: socket.socket) -> list[int]:
    """This process's descriptors of that socket."""
    wanted = os.fstat(listener.fileno()).st_ino
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.fstat(int(name)).st_ino == wanted:
                found.append(int(name))
    return found
