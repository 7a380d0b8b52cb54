"""A load generator, one process: an open loop, in which calls are sent when they are due, answered or not.

Each caller has a session of its own, and at most one call under way. Its calls arrive at random (a Poisson process). If
one is due while the one before is under way, it waits, and the wait counts as its latency. Without a rate, each caller
sends its next call at once.

Reads a `Job` from the standard input, prints `ready`, reads when to begin, and prints a line of CSV for each call.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

import grpc

from tests.tools.load.calls import (
    HOST_OPERATIONS,
    NOT_SENT,
    OPEN,
    OPERATIONS,
    RAISE,
    Call,
    Caller,
    method,
    raise_request,
    requests,
    to_csv,
)

_CHANNELS = 4
_TIMEOUT = 10.0
_GRACE = 5.0
"""Seconds after the end in which callers may still send what was due."""


class Job(TypedDict):
    """What one process sends."""

    address: str
    host_key: str
    callers: Sequence[Caller]
    mix: Mapping[str, float]
    """Parts of the arrivals, by operation."""
    rate: float
    """Arrivals a second of each caller; 0: each call as soon as the one before is answered."""
    seconds: float
    texts: Sequence[str]
    queries: Sequence[str]
    seed: int


class _Caller(threading.Thread):
    """Sends the calls of one session."""

    def __init__(
        self, job: Job, caller: Caller, stubs: Mapping[str, Any], seed: int, begin: Callable[[], float]
    ) -> None:
        super().__init__(daemon=True)  # or the process could not end if the order to begin never comes
        self._job = job
        self._stubs = stubs
        self._random = random.Random(seed)
        self._requests = requests(caller, job["texts"], job["queries"], self._random)
        self._session = (("authorization", f"Bearer {caller['token']}"),)
        self._host = (("authorization", f"Bearer {job['host_key']}"),)
        self._begin = begin
        self.calls: list[Call] = []

    def run(self) -> None:
        begin = self._begin()
        end, free = begin + self._job["seconds"], begin
        names, weights = [*self._job["mix"]], [*self._job["mix"].values()]
        for due in self._arrivals(begin, end):
            (operation,) = self._random.choices(names, weights)
            if time.monotonic() > end + _GRACE:
                self.calls.append(Call(operation, due - begin, 0.0, 0.0, NOT_SENT))
                continue
            request = self._requests[operation]()
            time.sleep(max(0.0, due - time.monotonic()))
            late = time.monotonic() - max(due, free)
            answer, free = self._send(operation, request, due, begin, late)
            if operation == OPEN and answer is not None:
                _, free = self._send(RAISE, raise_request(answer), free, begin, 0.0)

    def _arrivals(self, begin: float, end: float) -> Iterator[float]:
        due = begin
        while True:
            due = due + self._random.expovariate(self._job["rate"]) if self._job["rate"] else time.monotonic()
            if due >= end:
                return
            yield due

    def _send(
        self, operation: str, request: bytes, due: float, begin: float, late: float
    ) -> tuple[bytes | None, float]:
        """The answer, if there is one, and when it was there."""
        answer, status = None, "OK"
        try:
            answer = self._stubs[operation](
                request, metadata=self._host if operation in HOST_OPERATIONS else self._session, timeout=_TIMEOUT
            )
        except grpc.RpcError as error:
            status = error.code().name
        done = time.monotonic()
        self.calls.append(Call(operation, due - begin, late, done - due, status))
        return answer, done


def main() -> None:
    """`python -m tests.tools.load.generator`."""
    job: Job = json.loads(sys.stdin.readline())
    begin, go = [0.0], threading.Event()

    def beginning() -> float:
        go.wait()
        return begin[0]

    channels = [_channel(job["address"]) for _ in range(min(_CHANNELS, len(job["callers"])))]
    stubs: list[dict[str, Any]] = [
        {name: channel.unary_unary(method(name)) for name in OPERATIONS} for channel in channels
    ]
    callers = [
        _Caller(job, caller, stubs[number % len(stubs)], job["seed"] + number, beginning)
        for number, caller in enumerate(job["callers"])
    ]
    for caller in callers:
        caller.start()
    print("ready", flush=True)
    begin[0] = float(sys.stdin.readline())
    go.set()
    for caller in callers:
        caller.join()
    sys.stdout.write(to_csv(call for caller in callers for call in caller.calls))


def _channel(address: str) -> grpc.Channel:
    """A connection of its own."""
    channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
    grpc.channel_ready_future(channel).result(timeout=_TIMEOUT)
    return channel


if __name__ == "__main__":
    main()
