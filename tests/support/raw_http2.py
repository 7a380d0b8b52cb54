"""A client of raw HTTP/2, for what grpc's own clients never do."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _CREDIT = 0, 1, 3, 4, 6, 8
_FIRST_CREDIT = 2**16 - 1
_INITIAL_CREDIT = 4
_MAX_FRAME = 16 * 1024
_ACK = 1
_END_STREAM, _END_HEADERS = 1, 4
_NO_FLOW = struct.pack(">HI", 4, 0)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_EMPTY = b"\0\0\0\0\0"
_PAGE_OF_250 = b"\0\0\0\0\3\x10\xfa\x01"


@contextmanager
def unread(token: str, address: str, path: str, *, count: int) -> Iterator[None]:
    """So many lists of 250 entries, whose caller never reads the answers."""
    calls = b"".join(
        _call(number, address, path, _PAGE_OF_250, authorization=f"Bearer {token}") for number in range(1, 2 * count, 2)
    )
    with socket.create_connection(_host_and_port(address)) as stream:
        stream.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, _NO_FLOW) + calls)
        yield


@contextmanager
def without_message(token: str, address: str, path: str, *, count: int) -> Iterator[socket.socket]:
    """So many calls whose message never comes, on one connection, which is closed in the end."""
    with socket.create_connection(_host_and_port(address), timeout=10.0) as stream:
        stream.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b""))
        stream.sendall(_frame(_SETTINGS, _ACK, 0, b""))
        for number in range(1, 2 * count, 2):
            stream.sendall(_headers(number, address, path, authorization=f"Bearer {token}"))
        yield stream


def refused_at_once(token: str, address: str, path: str, *, count: int) -> int:
    """How many of so many such calls are refused before the server answers a ping that follows them."""
    refused = 0
    with without_message(token, address, path, count=count) as stream, stream.makefile("rb") as read:
        for _ in range(2):  # a call may be refused after the ping that follows it has been answered
            stream.sendall(_frame(_PING, 0, 0, bytes(8)))
            for kind, flags, _ in frames(read):
                if kind == _PING and flags & _ACK:
                    break
                refused += kind == _HEADERS and bool(flags & _END_STREAM)
            time.sleep(0.05)
    return refused


@contextmanager
def with_message(token: str, address: str, path: str, *, count: int) -> Iterator[int]:
    """So many calls with an empty message; how many the server has ended by a reset once it has read them all."""
    with socket.create_connection(_host_and_port(address), timeout=60.0) as stream, stream.makefile("rb") as read:
        stream.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + _frame(_SETTINGS, _ACK, 0, b""))
        for number in range(1, 2 * count, 2):
            stream.sendall(_call(number, address, path, _EMPTY, authorization=f"Bearer {token}"))
        resets = 0
        for _ in range(2):
            stream.sendall(_frame(_PING, 0, 0, bytes(8)))
            for kind, flags, _ in frames(read):
                if kind == _PING and flags & _ACK:
                    break
                resets += kind == _RST_STREAM
        yield resets


class Unfinished:
    """So many calls whose message of 1 MiB lacks its end, as much of it sent as the server's flow control allows."""

    def __init__(self, token: str, address: str, path: str, *, count: int) -> None:
        self._stream = socket.create_connection(_host_and_port(address), timeout=10.0)
        self._stream.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + _frame(_SETTINGS, _ACK, 0, b""))
        self._credits = dict.fromkeys(range(1, 2 * count, 2), _FIRST_CREDIT)
        self._of_connection = self._initial = _FIRST_CREDIT
        self._left = dict.fromkeys(self._credits, 2**20 - 100)
        for number in self._credits:
            self._stream.sendall(_headers(number, address, path, authorization=f"Bearer {token}"))
            self._send(number, b"\0" + struct.pack(">I", 2**20 - 5))

    @property
    def byte_count(self) -> int:
        """How many bytes the server has taken."""
        return sum(2**20 - 100 - left for left in self._left.values())

    def send_all(self) -> None:
        """Send until the server has taken nothing more for a second."""
        self._stream.settimeout(1.0)
        read = self._stream.makefile("rb")
        with suppress(TimeoutError):
            while True:
                for number in self._left:
                    while size := min(self._left[number], self._credits[number], self._of_connection, _MAX_FRAME):
                        self._send(number, bytes(size))
                self._read(*next(contents(read)))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def _send(self, number: int, content: bytes) -> None:
        self._stream.sendall(_frame(_DATA, 0, number, content))
        self._credits[number] -= len(content)
        self._left[number] -= len(content)
        self._of_connection -= len(content)

    def _read(self, kind: int, flags: int, number: int, content: bytes) -> None:
        if kind == _CREDIT and number:
            self._credits[number] += struct.unpack(">I", content)[0]
        elif kind == _CREDIT:
            self._of_connection += struct.unpack(">I", content)[0]
        elif kind == _PING and not flags & _ACK:
            self._stream.sendall(_frame(_PING, _ACK, 0, content))
        elif kind == _SETTINGS and not flags & _ACK:
            wider = dict(struct.iter_unpack(">HI", content)).get(_INITIAL_CREDIT, self._initial) - self._initial
            self._initial += wider
            self._credits = {each: credit + wider for each, credit in self._credits.items()}


class Unacknowledging:
    """A connection that never acknowledges the server's settings, so that grpc applies no limit to its headers."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stream = socket.create_connection(_host_and_port(address), timeout=5.0)
        self._number = -1
        self._stream.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b""))

    def send_headers(self, path: str, *, megabytes: int) -> int:
        """Begin a call whose header list is so large; return how many bytes were sent.

        The list has one long header, which is sent once, and then named by a byte each time.
        """
        self._number += 2
        value = _literal("x" * 4000)
        first = b"\x40" + _literal("x") + value if self._number == 1 else b""
        sent = _headers(self._number, self._address, path, first + b"\xbe" * (250 * megabytes))
        self._stream.sendall(sent)
        return len(sent)

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()


def frames(stream: BinaryIO) -> Iterator[tuple[int, int, int]]:
    """The kind, the flags and the stream's number of each frame that arrives."""
    for kind, flags, number, _ in contents(stream):
        yield kind, flags, number


def contents(stream: BinaryIO) -> Iterator[tuple[int, int, int, bytes]]:
    """The same, and the content of each frame."""
    while len(head := stream.read(9)) == 9:
        high, low, kind, flags, number = struct.unpack(">BHBBI", head)
        yield kind, flags, number, stream.read(high << 16 | low)


def _call(number: int, address: str, path: str, message: bytes, **metadata: str) -> bytes:
    return _headers(number, address, path, **metadata) + _frame(_DATA, _END_STREAM, number, message)


def _headers(number: int, address: str, path: str, more: bytes = b"", /, **metadata: str) -> bytes:
    headers = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": address,
        "content-type": "application/grpc", "te": "trailers", **metadata,
    }  # fmt: skip
    block = b"".join(b"\0" + _literal(name) + _literal(value) for name, value in headers.items())
    return _frame(_HEADERS, _END_HEADERS, number, block + more)


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(text: str) -> bytes:
    """A string as HPACK writes it plainly."""
    encoded = text.encode()
    size = len(encoded)
    return (bytes([size]) if size < 0x7F else b"\x7f" + _rest(size - 0x7F)) + encoded


def _rest(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded, number = encoded + bytes([number & 0x7F | 0x80]), number >> 7
    return encoded + bytes([number])
