"""Pauses after the errors of a model at an address, so that what fails is not asked for each search."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from muniment_server.runtime.remote_client import RemoteModelError
from muniment_server.telemetry.repeats import Repeats, warn_once

_LOG = logging.getLogger("muniment.embedder")
_T = TypeVar("_T")
FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""How many seconds the first pause and the longest take; each is twice as long as the one before."""


class Pauses:
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
        """Begin one, and return how long it is."""
        seconds = max(self._next, at_least)
        self._until, self._next = self._clock() + seconds, min(2 * self._next, _LONGEST_PAUSE)
        return seconds

    def end(self) -> None:
        """Forget the errors."""
        self._next, self._until = FIRST_PAUSE, 0.0


class Attempts:
    """Asks a model at an address for the searches of one level. If it answers for none, it is not asked for a while."""

    def __init__(self, failure: str, clock: Callable[[], float] = time.monotonic) -> None:
        """*failure*: the beginning of the line in the log, before what the error says."""
        self._failure = failure
        self._pauses = Pauses(clock)
        self._repeats = Repeats()
        self._probing = threading.Lock()

    def ask(self, send: Callable[[], _T], probe: Callable[[], object]) -> _T | None:
        """What *send* returns. None if it raises RemoteModelError, or while a pause lasts.

        *probe* asks for what the model should always answer, and raises RemoteModelError if it does not. It is called
        in another thread after an error, which may be due to what was sent: one caller must not stop all others.
        """
        if self._pauses.remaining:
            return None
        try:
            answer = send()
        except RemoteModelError as error:
            warn_once(_LOG, self._repeats, f"{self._failure}: {error}")
            if error.retry_after:
                self._pauses.begin(error.retry_after)
            elif self._probing.acquire(blocking=False):
                self._start(probe)
            return None
        self._pauses.end()
        return answer

    def _start(self, probe: Callable[[], object]) -> None:
        try:
            threading.Thread(target=self._probe, args=(probe,), daemon=True).start()
        except RuntimeError:  # there are too many threads
            self._probing.release()

    def _probe(self, probe: Callable[[], object]) -> None:
        try:
            probe()
        except RemoteModelError as error:
            self._pauses.begin(error.retry_after)
        else:
            self._pauses.end()
        finally:
            self._probing.release()
