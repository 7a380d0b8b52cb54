"""Handing values from one thread to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Condition
from typing import Generic, TypeVar

Value = TypeVar("Value")

ROOM = 4


class Handover(Iterator[Value], Generic[Value]):
    """One thread gives, another iterates. The giver is never more than a few values ahead."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: deque[Value] = deque()
        self._over = False

    def give(self, value: Value) -> bool:
        """Wait for room and give. Whether anybody still takes."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or len(self._waiting) < ROOM)
            if not self._over:
                self._waiting.append(value)
                self._changed.notify_all()
            return not self._over

    def end(self) -> None:
        """Give no more, take what is waiting. Either thread may say so, and more than once."""
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
