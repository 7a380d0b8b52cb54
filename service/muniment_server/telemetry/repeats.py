"""Sums up equal events, so that whoever causes many of them cannot fill the disk with log lines."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

_SECONDS = 10.0
_MAX_KEYS = 1_000
Event: TypeAlias = tuple[tuple[str, object], ...]
"""What makes events equal: names and values."""
_OTHERS: Event = ()
"""All events for which there was no room."""


class Repeats:
    """Distinguishes the first of equal events within ten seconds from its repeats, and counts the repeats."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[Event, tuple[float, int]] = {}
        """When each event happened first, and how often it was repeated since."""
        self._lock = threading.Lock()

    def is_first(self, key: Event) -> bool:
        """Whether this event is new in the last ten seconds. One that is not, or that finds no room, is counted."""
        with self._lock:
            if key not in self._counts and len(self._counts) >= _MAX_KEYS:
                key = _OTHERS
            is_first = key not in self._counts and key != _OTHERS
            begin, count = self._counts.get(key, (self._clock(), 0))
            self._counts[key] = begin, count + (not is_first)
            return is_first

    def ended(self) -> Iterator[tuple[Event, int]]:
        """The events whose ten seconds are over and that were repeated, and how often. To be called every second."""
        latest = self._clock() - _SECONDS
        with self._lock:
            over = [(key, count) for key, (begin, count) in self._counts.items() if begin <= latest]
            for key, _ in over:
                del self._counts[key]
        return ((key, count) for key, count in over if count)


def warn_once(log: logging.Logger, repeats: Repeats, text: str) -> None:
    """Log *text*, unless it was logged within the last ten seconds."""
    for _ in repeats.ended():
        pass
    if repeats.is_first((("text", text),)):
        log.warning("%s", text)
