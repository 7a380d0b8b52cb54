"""The threads that run calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one server takes on at once."""

    threads: int = 4
    """Calls that run at once. More would contend for the interpreter lock."""
    long_threads: int = 2
    """Searches and renderings that run at once, on threads of their own."""
    stream_threads: int = 1
    """Streams that are received at once, on threads of their own: each waits for its caller."""
    max_in_flight: int = 256
    """Calls that run or wait, apart from long ones and streams. More are refused at once."""

    @property
    def connections(self) -> int:
        """The most connections that one role needs at once."""
        return self.threads + self.long_threads + self.stream_threads


class CallPool(ThreadPoolExecutor):
    """The threads for calls of one sort, and the number of calls that run or wait for them."""

    def __init__(self, thread_count: int, *, max_in_flight: int) -> None:
        super().__init__(max_workers=thread_count, thread_name_prefix="call")
        self.in_flight = 0
        self._max_in_flight = max_in_flight
        self._count = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run *fn* on a thread. Called by grpc on its one serving thread."""
        with self._count:
            self.in_flight += 1
        try:
            future = super().submit(fn, *args, **kwargs)
        except RuntimeError:  # shut down
            self._done(None)
            raise
        future.add_done_callback(self._done)
        return future

    @property
    def is_full(self) -> bool:
        """Whether one more call is to be refused."""
        return self.in_flight >= self._max_in_flight

    def _done(self, _: Future[Any] | None) -> None:
        with self._count:
            self.in_flight -= 1
