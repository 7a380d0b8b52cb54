"""The deadline of one call: how long it may take, and what is canceled when the caller goes away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from muniment_server.domain.errors import DeadlineExceeded


class Deadline:
    """How long one call may run. It may expire early, from another thread, when the caller cancels."""

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._expired = False
        self._cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def remaining(self) -> float | None:
        """Seconds left, never below 0. None: no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @contextmanager
    def canceling(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Call *cancel* if the deadline expires within the block. A cancel that was begun has returned at its end.

        Raises DeadlineExceeded if it has expired already.
        """
        with self._lock:
            self._cancel = cancel
        try:
            if self._expired:
                raise DeadlineExceeded
            yield
        finally:
            with self._lock:
                self._cancel = None

    def expire(self) -> None:
        """Expire now. Returns at once: a cancel must not block the thread that serves all connections."""
        self._expired = True
        if self._cancel is not None:
            threading.Thread(target=self._cancel_now, daemon=True).start()

    def _cancel_now(self) -> None:
        with self._lock:
            if self._cancel is not None:
                self._cancel()
