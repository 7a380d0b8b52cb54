"""Pauses after errors of a model at an address."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""How many seconds the first pause and the longest take; each is twice as long as the one before."""


class ErrorBackoff:
    """Pauses after errors, each twice as long as the one before, until there is a success."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = FIRST_PAUSE
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """How many seconds the pause still lasts."""
        return max(0.0, self._until - self._clock())

    def begin(self, at_least: float = 0.0) -> float:
        """Begin a pause of at least so many seconds, and return its length. It cuts short none that lasts longer."""
        seconds = max(self._next, at_least)
        self._until = max(self._until, self._clock() + seconds)
        self._next = min(2 * self._next, _LONGEST_PAUSE)
        return seconds

    def reset(self) -> None:
        """Forget the errors, so that the next pause is a short one. A pause that has begun is not cut short."""
        self._next = FIRST_PAUSE
