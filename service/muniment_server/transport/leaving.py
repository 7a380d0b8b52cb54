"""How a server lets its callers leave before it stops, so that none of their calls fails.

grpc's own stop cancels calls that arrive before their callers know of it, and resets connections that wait to be
accepted. A server that leaves does neither: it takes no new connections, which then reach the other servers of its
address, and serves those it has until they are as old as connections get. grpc ends them without failing a call.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator

_ACCEPT_SECONDS = 0.5
"""How long connections may take to be accepted after new ones are no longer begun."""
_CHECK_INTERVAL = 0.2
_SO_ATTACH_FILTER = 26
# In the language of packet filters: drop a segment with SYN and without ACK, accept all others.
_LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x54, 0x15, 0x06
_TCP_FLAGS, _SYN, _SYN_AND_ACK = 13, 0x02, 0x12
_DROP_NEW_CONNECTIONS = (
    (_LOAD_BYTE, 0, 0, _TCP_FLAGS),
    (_AND, 0, 0, _SYN_AND_ACK),
    (_JUMP_IF_EQUAL, 0, 1, _SYN),
    (_RETURN, 0, 0, 0),
    (_RETURN, 0, 0, 0xFFFFFFFF),
)


def leave(port_or_path: int | str, *, seconds: float) -> None:
    """Take no new connections there, and wait until there are none any more, but at most so many *seconds*."""
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(each) for each in _sockets(port_or_path) if _listens(each)]
        for listener in listeners:
            if listener.family != socket.AF_UNIX:
                _ignore_new_connections(listener)
        time.sleep(_ACCEPT_SECONDS)
        for listener in listeners:
            with contextlib.suppress(OSError):  # grpc has several descriptors of one socket
                listener.shutdown(socket.SHUT_RDWR)
    while _has_connections(port_or_path) and time.monotonic() < end:
        time.sleep(_CHECK_INTERVAL)


def _ignore_new_connections(listener: socket.socket) -> None:
    """Have the kernel drop attempts to connect. Callers repeat them after a second, and reach another server.

    Where the kernel attaches filters for root alone, a connection that is begun in the moment of `shutdown` is reset.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _DROP_NEW_CONNECTIONS))
    with contextlib.suppress(PermissionError):
        listener.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HL", len(_DROP_NEW_CONNECTIONS), ctypes.addressof(program)),
        )


def _has_connections(port_or_path: int | str) -> bool:
    found = False
    for each in _sockets(port_or_path):
        with each:
            found = found or (not _listens(each) and _is_connected(each))
    return found


def _sockets(port_or_path: int | str) -> Iterator[socket.socket]:
    """Duplicates of this process's sockets that are bound there."""
    for name in os.listdir("/proc/self/fd"):
        try:
            duplicate = os.dup(int(name))
        except OSError:  # closed meanwhile
            continue
        if not stat.S_ISSOCK(os.fstat(duplicate).st_mode):
            os.close(duplicate)
            continue
        found = socket.socket(fileno=duplicate)
        if _bound_to(found) == port_or_path:
            yield found
        else:
            found.close()


def _bound_to(found: socket.socket) -> int | str | None:
    if found.family in (socket.AF_INET, socket.AF_INET6):
        return int(found.getsockname()[1])
    return str(found.getsockname()) if found.family == socket.AF_UNIX else None


def _listens(found: socket.socket) -> bool:
    return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _is_connected(found: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        found.getpeername()
        return True
    return False
