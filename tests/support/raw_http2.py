"""A client of raw HTTP/2, for what grpc's own clients never do."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_DATA, _HEADERS, _RST_STREAM, _SETTINGS = 0, 1, 3, 4
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


class Unnoticing:
    """A connection that goes on although the server has asked it not to, as one does that has not read this yet."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stream = socket.create_connection(_host_and_port(address), timeout=5.0)
        self._read = self._stream.makefile("rb")
        self._number = -1
        self._stream.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b""))

    def is_answered(self, path: str) -> bool:
        """Call a method with an empty message; return whether there is an answer."""
        self._number += 2
        answered = False
        self._stream.sendall(_call(self._number, self._address, path, _EMPTY))
        for kind, flags, number in self._frames():
            if kind == _SETTINGS and not flags & _ACK:
                self._stream.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            elif number == self._number:
                answered = answered or kind == _DATA
                if kind == _RST_STREAM or flags & _END_STREAM:
                    return answered
        return False

    def close(self) -> None:
        """Close the connection."""
        self._read.close()
        self._stream.close()

    def _frames(self) -> Iterator[tuple[int, int, int]]:
        while len(head := self._read.read(9)) == 9:
            high, low, kind, flags, number = struct.unpack(">BHBBI", head)
            self._read.read(high << 16 | low)
            yield kind, flags, number


def _call(number: int, address: str, path: str, message: bytes, **metadata: str) -> bytes:
    headers = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": address,
        "content-type": "application/grpc", "te": "trailers", **metadata,
    }  # fmt: skip
    block = b"".join(b"\0" + _literal(name) + _literal(value) for name, value in headers.items())
    return _frame(_HEADERS, _END_HEADERS, number, block) + _frame(_DATA, _END_STREAM, number, message)


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
