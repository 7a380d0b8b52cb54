"""A load of saves: one process that keeps N SaveMemory calls in flight, each with a content that no earlier run saved.

Prints one line of JSON. Static-body load generators cannot do this: a save that changes nothing writes nothing.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import grpc

from muniment.v1 import memory_service_pb2

_METHOD = "/muniment.v1.MemoryService/SaveMemory"


class Saver:
    """Keeps calls in flight until the time is over."""

    def __init__(self, address: str, token: str, *, in_flight: int, seconds: float, name: str) -> None:
        self._stub: Any = grpc.insecure_channel(address).unary_unary(_METHOD)
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._end = time.monotonic() + seconds
        self._name = name
        self._left = in_flight
        self._count = 0
        self._first = time.time_ns() // 1000
        self._lock = threading.Lock()
        self._all_done = threading.Event()
        self.latencies: list[float] = []
        self.failures: list[str] = []

    def run(self) -> float:
        """Run to the end; return how long it took."""
        begun = time.monotonic()
        for _ in range(self._left):
            self._send()
        self._all_done.wait()
        return time.monotonic() - begun

    def _send(self) -> None:
        with self._lock:
            self._count += 1
            number = self._count
        request = memory_service_pb2.SaveMemoryRequest(
            key=f"{self._name}-{number % 1000}", content=f"{self._first + number:>400}", tags=["bench"]
        )
        begun = time.monotonic()
        call = self._stub.future(request.SerializeToString(), metadata=self._metadata, timeout=60)
        call.add_done_callback(lambda done: self._received(done, begun))

    def _received(self, call: Any, begun: float) -> None:
        now = time.monotonic()
        code = call.code()
        if code is grpc.StatusCode.OK:
            self.latencies.append(now - begun)
        else:
            self.failures.append(code.name)
        if now < self._end:
            self._send()
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._all_done.set()


def main() -> None:
    """`python -m tests.tools.bench.saver ADDRESS IN_FLIGHT SECONDS NAME`, the token on the standard input."""
    address, in_flight, seconds, name = sys.argv[1:]
    saver = Saver(address, sys.stdin.readline().strip(), in_flight=int(in_flight), seconds=float(seconds), name=name)
    took = saver.run()
    print(json.dumps({"took": took, "latencies": saver.latencies, "failures": saver.failures}))


if __name__ == "__main__":
    main()
