"""Passes values from one thread to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Condition
from typing import Generic, TypeVar

Value = TypeVar("Value")

CAPACITY = 4


class Handover(Iterator[Value], Generic[Value]):
    """A bounded queue that one thread fills and another one iterates over."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: deque[Value] = deque()
        self._over = False

    def give(self, value: Value) -> bool:
        """Wait until there is room, and add *value*. False if the other side has stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or len(self._waiting) < CAPACITY)
            if not self._over:
                self._waiting.append(value)
                self._changed.notify_all()
            return not self._over

    def end(self) -> None:
        """Accept no more values; those in the queue remain. Either thread may call this, repeatedly."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def __next__(self) -> Value:
        with self._changed:
            self._changed.wait_for(lambda: self._over or bool(self._waiting))
            if not self._waiting:
                raise StopIteration
            self._changed.notify_all()
            return self._waiting.popleft()
