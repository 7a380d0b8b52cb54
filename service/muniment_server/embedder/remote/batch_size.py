"""How many texts a model at an address gets at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from muniment_server.embedder.remote.client import RemoteModelError

_T = TypeVar("_T")


class BatchSize:
    """How many texts are sent at a time: half as many after an error, twice as many after a quick answer."""

    def __init__(self, most: int, quick: float, clock: Callable[[], float] = time.monotonic) -> None:
        """*most*: the largest size. *quick*: how many seconds a quick answer takes at most."""
        self._most = most
        self._quick = quick
        self._clock = clock
        self.texts = most

    def run(self, count: int, send: Callable[[], _T]) -> _T:
        """Call *send*, which sends *count* texts, and adjust the size. Returns or raises what *send* does."""
        started = self._clock()
        try:
            answer = send()
        except RemoteModelError as error:
            if not error.retry_after:  # otherwise smaller batches would make it worse: requests are limited
                self.texts = max(1, count // 2)  # one text may be why the others are not embedded
            raise
        if self._clock() - started < self._quick:
            self.texts = min(2 * self.texts, self._most)
        return answer
