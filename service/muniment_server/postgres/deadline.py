"""The life of one call: how long it may take, and what stops when its caller goes away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from muniment_server.domain.errors import DeadlineExceeded


class Lifetime:
    """How long one call may live. The end may come from another thread."""

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._over = False
        self._cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def remaining(self) -> float | None:
        """Seconds left, never below 0. None: no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def cancels(self, cancel: Callable[[], None] | None) -> None:
        """Call *cancel* if the life ends from now on; None: nothing any more, and whatever was called has returned.

        Raises DeadlineExceeded if the life is over.
        """
        with self._lock:
            self._cancel = cancel
        if self._over and cancel is not None:
            raise DeadlineExceeded

    def end(self) -> None:
        """End it. Returns at once: a cancel in flight must not hold the thread that serves all connections."""
        self._over = True
        if self._cancel is not None:
            threading.Thread(target=self._cancel_now, daemon=True).start()

    def _cancel_now(self) -> None:
        with self._lock:
            if self._cancel is not None:
                self._cancel()


@dataclass(frozen=True, slots=True)
class Call:
    """What the layers below know of one call: its method's name, for the audit, and its life."""

    method: str
    lifetime: Lifetime = field(default_factory=Lifetime)
