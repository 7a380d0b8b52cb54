"""Makes a request that fails smaller, for as long as it fails."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.proof.fuzz.wire import Field, Payload, Tree

_S = TypeVar("_S", str, bytes)
_ATTEMPTS = 300
_SECONDS = 20.0


def shrunk(payloads: Sequence[Payload], fails: Callable[[Sequence[Payload]], bool]) -> Sequence[Payload]:
    """The smallest request found that still fails. *fails* is asked for some seconds, a few hundred times at most."""
    end = time.monotonic() + _SECONDS
    attempts = itertools.takewhile(lambda _: time.monotonic() < end, range(_ATTEMPTS))
    smaller: Sequence[Payload] | None = payloads
    while smaller is not None:
        payloads = smaller
        smaller = next((each for each, _ in zip(_requests(payloads), attempts, strict=False) if fails(each)), None)
    return payloads


def _requests(payloads: Sequence[Payload]) -> Iterator[Sequence[Payload]]:
    for place, payload in enumerate(payloads):
        if len(payloads) > 1:
            yield [*payloads[:place], *payloads[place + 1 :]]
        for smaller in _payloads(payload):
            yield [*payloads[:place], smaller, *payloads[place + 1 :]]


def _payloads(payload: Payload) -> Iterator[Payload]:
    return _bytes(payload) if isinstance(payload, bytes) else _trees(payload)


def _trees(tree: Tree) -> Iterator[Tree]:
    """Half of the fields, all but one, and all with one that is smaller."""
    if len(tree) > 3:
        yield tree[: len(tree) // 2]
        yield tree[len(tree) // 2 :]
    for place in range(len(tree)):
        yield tree[:place] + tree[place + 1 :]
    for place, field in enumerate(tree):
        for smaller in _fields(field):
            yield (*tree[:place], smaller, *tree[place + 1 :])


def _fields(field: Field) -> Iterator[Field]:
    if isinstance(field.value, int):
        smaller: Iterator[int | bytes | Tree] = iter({0, 1, field.value // 2} if field.value > 1 else ())
    elif isinstance(field.value, bytes):
        smaller = _bytes(field.value)
    else:
        smaller = _trees(field.value)
    return (replace(field, value=value) for value in smaller)


def _bytes(content: bytes) -> Iterator[bytes]:
    """Parts of *content*. A text is cut between its characters, so that it stays a text."""
    try:
        yield from (part.encode() for part in _parts(content.decode()))
    except UnicodeDecodeError:
        yield from _parts(content)


def _parts(whole: _S) -> Iterator[_S]:
    half = len(whole) // 2
    if half:
        yield whole[:half]
        yield whole[half:]
    if half > 1:
        yield whole[:-1]
        yield whole[1:]
