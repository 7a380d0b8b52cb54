"""Pauses between attempts that fail: starts of a process that dies, requests to a model at an address."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Backoff:
    """Pauses after failures, each twice as long as the one before, until there is a success."""

    first, longest = 1.0, 60.0
    """How many seconds the first pause and the longest take."""
    forgets_after = math.inf
    """How many seconds after the end of a pause nothing has failed for so long that the next is a short one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = self.first
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """How many seconds the pause still lasts."""
        return max(0.0, self._until - self._clock())

    def begin(self, at_least: float = 0.0) -> float:
        """Begin a pause of at least so many seconds, and return its length. It cuts short none that lasts longer."""
        if self._clock() - self._until > self.forgets_after:
            self.reset()
        seconds = max(self._next, at_least)
        self._until = max(self._until, self._clock() + seconds)
        self._next = min(2 * self._next, self.longest)
        return seconds

    def reset(self) -> None:
        """Forget the failures, so that the next pause is a short one. A pause that has begun is not cut short."""
        self._next = self.first


class StartBackoff(Backoff):
    """That of a process, which begins with each start: one that has run for a minute is taken to be well."""

    first, longest = 0.1, 10.0
    forgets_after = 60.0
