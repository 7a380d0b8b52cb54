"""A client of raw HTTP/2, for what grpc's own clients never do."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_STREAM, _END_HEADERS = 1, 4
_NO_FLOW = struct.pack(">HI", 4, 0)
_PAGE_OF_250 = b"\0\0\0\0\3\x10\xfa\x01"


@contextmanager
def unread(token: str, address: str, path: str, *, count: int) -> Iterator[None]:
    """So many lists of 250 entries, whose caller never reads the answers."""
    host, _, port = address.rpartition(":")
    headers = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": address,
        "content-type": "application/grpc", "te": "trailers", "authorization": f"Bearer {token}",
    }  # fmt: skip
    block = b"".join(b"\0" + _literal(name) + _literal(value) for name, value in headers.items())
    calls = b"".join(
        _frame(_HEADERS, _END_HEADERS, number, block) + _frame(_DATA, _END_STREAM, number, _PAGE_OF_250)
        for number in range(1, 2 * count, 2)
    )
    with socket.create_connection((host, int(port))) as stream:
        stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, _NO_FLOW) + calls)
        yield


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
