"""Calls of one process, as fast as its callers can.

Imports the standard library alone: it runs in the environment of the peers.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypedDict

Operation = Callable[[random.Random], object]


class Order(TypedDict):
    """What a peer is asked for, on its standard input."""

    conninfo: str
    folder: str
    contents: Sequence[str]
    queries: Sequence[str]
    callers: int
    seconds: float


class Measured(TypedDict):
    """What it answers, for each operation, on its standard output."""

    latencies: Sequence[float]
    """Seconds."""
    seconds: float
    cpu: float
    """CPU seconds of its own process."""


def order() -> Order:
    """What is asked for."""
    found: Order = json.load(sys.stdin)
    return found


def answer(operations: Mapping[str, Operation], *, callers: int, seconds: float) -> None:
    """Measure one operation after another, and print the answer."""
    print(json.dumps({name: _measured(operation, callers, seconds) for name, operation in operations.items()}))


def _measured(operation: Operation, callers: int, seconds: float) -> Measured:
    operation(random.Random(0))
    latencies: list[float] = []

    def call_until(end: float, seed: int) -> None:
        source = random.Random(seed)
        while (begun := time.monotonic()) < end:
            operation(source)
            latencies.append(time.monotonic() - begun)

    begun, cpu = time.monotonic(), _cpu()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(call_until, [begun + seconds] * callers, range(1, callers + 1)))
    return Measured(latencies=latencies, seconds=time.monotonic() - begun, cpu=_cpu() - cpu)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
