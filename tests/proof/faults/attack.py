"""What a caller does to stop the others, in a process of its own.

`python -m tests.proof.faults.attack NAME ADDRESS COUNT`

It reads so many tokens, one a line, prints "begun", and goes on until its input ends.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any

import grpc

from muniment_server.domain import tokens
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.tokens import TokenKind
from tests.support.raw_http2 import Unacknowledging, unread

_GET = "/muniment.v1.MemoryService/GetMemory"
_STORE = "/muniment.v1.PassageService/StorePassage"
_SAVE_MANY = "/muniment.v1.MemoryService/SaveMemories"
_LIST = "/muniment.v1.MemoryService/ListMemories"
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_EACH_SECOND = 100
_CONNECTIONS, _STREAMS, _SWELL_BYTES = 60, 50, 1_900_000
_PAUSE = 0.02
"""Seconds after a refusal."""


def stall(address: str, tokens: Sequence[str], over: threading.Event) -> None:
    """A hundred calls a second that send headers and no message."""
    with grpc.insecure_channel(address) as channel:
        calls: list[Any] = []
        for token in itertools.cycle(tokens):
            if over.wait(1 / _EACH_SECOND):
                break
            calls.append(channel.stream_unary(_GET).future(_silence(over), metadata=_bearer(token), timeout=60))
            calls = [call for call in calls if not call.done()]


def read(address: str, tokens: Sequence[str], over: threading.Event) -> None:
    """A hundred honest reads a second, for comparison: they cost the caller what stalled calls do."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = channel.unary_unary(_GET)
        for token in itertools.cycle(tokens):
            if over.wait(1 / _EACH_SECOND):
                break
            stub.future(b"\x0a\x04plan", metadata=_bearer(token), timeout=60)


def flood(address: str, tokens: Sequence[str], over: threading.Event) -> None:
    """Two hundred reads in flight, shared among the tokens."""
    _keep_in_flight(address, tokens, over, _GET, itertools.repeat(b"\x0a\x04plan"), 200)


def write(address: str, tokens: Sequence[str], over: threading.Event) -> None:
    """Sixteen writes of 256 KiB in flight."""
    content = b"word " * (256 * 1024 // 5)
    _keep_in_flight(address, tokens, over, _STORE, itertools.repeat(_field(1, content)), 16)


def write_many(address: str, tokens: Sequence[str], over: threading.Event) -> None:
    """Sixteen batches of two memories in flight, as large as they may be, of words that are new to the index."""
    _keep_in_flight(address, tokens, over, _SAVE_MANY, _batches(), 16)


def _batches() -> Iterator[bytes]:
    while True:
        texts = (b" ".join(os.urandom(4).hex().encode() for _ in range(64 * 1024 // 9)) for _ in range(2))
        yield b"".join(_field(1, _field(1, b"key%d" % n) + _field(2, text)) for n, text in enumerate(texts))


def guess(address: str, _: Sequence[str], over: threading.Event) -> None:
    """Well-formed tokens that do not exist, as fast as they go, on four connections: old ones, and new ones."""
    with ExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [stack.enter_context(grpc.insecure_channel(address, options)) for _ in range(4)]
        stubs: list[Any] = [channel.unary_unary(_GET) for channel in channels]
        guesses = _guesses()
        while not over.is_set():
            calls = [
                stub.future(b"\x0a\x04plan", metadata=_bearer(next(guesses)), timeout=20)
                for stub in stubs
                for _ in range(12)
            ]
            for call in calls:
                call.exception()


def _guesses() -> Iterator[str]:
    """Tokens as version 0.1 made them, and with a right checksum."""
    for number in itertools.count():
        kind = (TokenKind.HOST, TokenKind.SESSION)[number % 2]
        token = tokens.mint(kind, tenant=TenantNumber(1), secret=number.to_bytes(32))
        yield token if number % 4 < 2 else token.rpartition("_")[0]


def leave_unread(address: str, tokens: Sequence[str], over: threading.Event) -> None:
    """Unread pages of three megabytes, on three connections."""
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(unread(tokens[0], address, _LIST, count=95))
        over.wait()


def swell(address: str, _: Sequence[str], over: threading.Event) -> None:
    """Headers without a credential, 1.9 megabytes a second on 60 connections, of which each call's become eight.

    The server's settings are never acknowledged.
    """
    sent, begun = 0, time.monotonic()
    while not over.is_set():
        with ExitStack() as stack:
            connections = [stack.enter_context(closing(Unacknowledging(address))) for _ in range(_CONNECTIONS)]
            for _number, connection in itertools.product(range(_STREAMS), connections):
                with suppress(OSError):  # the server has ended it
                    sent += connection.send_headers(_HEALTH_CHECK, megabytes=8)
                over.wait(max(0.0, begun + sent / _SWELL_BYTES - time.monotonic()))


def _keep_in_flight(
    address: str, tokens: Sequence[str], over: threading.Event, path: str, requests: Iterator[bytes], number: int
) -> None:
    room = threading.Semaphore(number)

    def done(call: Any) -> None:
        if call.exception():
            time.sleep(_PAUSE)
        room.release()

    with grpc.insecure_channel(address) as channel:
        stub: Any = channel.unary_unary(path)
        for token in itertools.cycle(tokens):
            room.acquire()
            if over.is_set():
                break
            call = stub.future(next(requests), metadata=_bearer(token), timeout=60)
            call.add_done_callback(done)


def _silence(over: threading.Event) -> Any:
    over.wait()
    yield from ()


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def _field(number: int, value: bytes) -> bytes:
    """A field of bytes in a message."""
    return bytes([number << 3 | 2]) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded, number = encoded + bytes([number & 0x7F | 0x80]), number >> 7
    return encoded + bytes([number])


ATTACKS: dict[str, Callable[[str, Sequence[str], threading.Event], None]] = {
    "stall": stall,
    "read": read,
    "flood": flood,
    "write": write,
    "write-many": write_many,
    "guess": guess,
    "leave-unread": leave_unread,
    "swell": swell,
}


def main() -> None:
    """Attack until the input ends."""
    name, address, number = sys.argv[1:]
    tokens = [sys.stdin.readline().strip() for _ in range(int(number))]
    over = threading.Event()
    thread = threading.Thread(target=ATTACKS[name], args=(address, tokens, over))
    thread.start()
    print("begun", flush=True)
    sys.stdin.read()
    over.set()
    thread.join(5)
    sys.stdout.flush()
    os._exit(0)  # grpc may wait for streams that will never end


if __name__ == "__main__":
    main()
