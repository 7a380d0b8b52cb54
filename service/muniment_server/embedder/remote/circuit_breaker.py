"""Keeps searches from a model at an address that fails."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from muniment_server.embedder.remote.client import RemoteModelError
from muniment_server.process.backoff import Backoff
from muniment_server.telemetry.repeats import Repeats, warn_once

_LOG = logging.getLogger("muniment.embedder")
_T = TypeVar("_T")


class CircuitBreaker:
    """Sends no search of one level while a model at an address answers not even the probe, or has asked for a pause."""

    def __init__(self, failure: str, clock: Callable[[], float] = time.monotonic) -> None:
        """*failure*: the beginning of the line in the log, before what the error says."""
        self._failure = failure
        self._backoff = Backoff(clock)
        self._repeats = Repeats()
        self._probing = threading.Lock()
        self._prober = ThreadPoolExecutor(1)

    def ask(self, send: Callable[[], _T], probe: Callable[[], object]) -> _T | None:
        """What *send* returns. None if it raises RemoteModelError, or while a pause lasts.

        An error may be due to the text that was sent, and one caller must not stop all others. So unless the server
        asks for a pause, *probe* is called after an error, in another thread: it sends what the model should always
        answer, and raises RemoteModelError if there is no answer. Then a pause begins.
        """
        if self._backoff.remaining:
            return None
        try:
            answer = send()
        except RemoteModelError as error:
            warn_once(_LOG, self._repeats, f"{self._failure}: {error}")
            if error.retry_after:
                self._backoff.begin(error.retry_after)
            elif self._probing.acquire(blocking=False):
                self._prober.submit(self._probe, probe)
            return None
        self._backoff.reset()
        return answer

    def _probe(self, probe: Callable[[], object]) -> None:
        try:
            probe()
        except RemoteModelError as error:
            self._backoff.begin(error.retry_after)
        else:
            self._backoff.reset()
        finally:
            self._probing.release()
