"""Pauses after the errors of a model at an address, so that what fails is not asked for each search."""

from __future__ import annotations

import logging
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
    """Asks a model at an address for the searches of one level. After an error, it is not asked for a while."""

    def __init__(self, failure: str, probe: Callable[[], object]) -> None:
        """*failure*: the beginning of the line in the log, before what the error says.

        *probe* asks for a sentence instead, and raises RemoteModelError if there is no answer.
        """
        self._failure = failure
        self._probe = probe
        self._pauses = Pauses()
        self._repeats = Repeats()

    def ask(self, send: Callable[[], _T]) -> _T | None:
        """What *send* returns. None if it raises RemoteModelError, or did just before."""
        if self._pauses.remaining:
            return None
        try:
            answer = send()
        except RemoteModelError as error:
            if not self._answers_others(error):
                self._pauses.begin(error.retry_after)
            warn_once(_LOG, self._repeats, f"{self._failure}: {error}")
            return None
        self._pauses.end()
        return answer

    def _answers_others(self, error: RemoteModelError) -> bool:
        """Whether only what was sent is to blame: one caller must not stop the searches of all others."""
        if not error.may_be_the_text and not error.is_late:
            return False
        try:
            self._probe()
        except RemoteModelError:
            return False
        return True
