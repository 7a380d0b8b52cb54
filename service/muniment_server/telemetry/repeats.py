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
    """Distinguishes the first of equal events within *seconds* from its repeats, and counts the repeats."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, seconds: float = _SECONDS) -> None:
        self.seconds = seconds
        self._clock = clock
        self._counts: dict[Event, tuple[float, int]] = {}
        """When each event happened first, and how often it was repeated since."""
        self._lock = threading.Lock()

    def is_first(self, key: Event) -> bool:
        """Whether this event is new in the last *seconds*. One that is not, or that finds no room, is counted."""
        with self._lock:
            if key not in self._counts and len(self._counts) >= _MAX_KEYS:
                key = _OTHERS
            is_first = key not in self._counts and key != _OTHERS
            begin, count = self._counts.get(key, (self._clock(), 0))
            self._counts[key] = begin, count + (not is_first)
            return is_first

    def ended(self) -> Iterator[tuple[Event, int]]:
        """The events whose *seconds* are over and that were repeated, and how often. To be called every second."""
        latest = self._clock() - self.seconds
        with self._lock:
            over = [(key, count) for key, (begin, count) in self._counts.items() if begin <= latest]
            for key, _ in over:
                del self._counts[key]
        return ((key, count) for key, count in over if count)


def warn_once(log: logging.Logger, repeats: Repeats, text: str) -> None:
    """Log *text*, unless it was logged within the seconds of *repeats*. What was repeated is not summed up."""
    for _ in repeats.ended():
        pass
    if repeats.is_first((("text", text),)):
        log.warning("%s", text)


def log_and_count(log: logging.Logger, repeats: Repeats, level: int, text: str) -> None:
    """Log *text*, or count it if it was logged within the seconds of *repeats*: see `sum_up`."""
    if repeats.is_first((("level", level), ("text", text))):
        log.log(level, "%s", text)


def sum_up(log: logging.Logger, repeats: Repeats) -> None:
    """Log how often each text of `log_and_count` was repeated. To be called from time to time."""
    for event, count in repeats.ended():
        match event:
            case (("level", int(level)), ("text", text)):
                log.log(level, "%d more times in %d s: %s", count, repeats.seconds, text)
                repeats.is_first(event)  # so that its next repeats are summed up, too
