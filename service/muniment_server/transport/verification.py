"""The lane of callers that this worker has not seen in the last minute: one thread looks their tokens up together.

Whoever guesses tokens fills this lane and no other, and costs the database one query for each tenant that the guesses
name, at most every few milliseconds. A caller with a valid token passes it once a minute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from muniment_server.domain.errors import MunimentError, Overloaded, Unauthenticated
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor.authentication import Credentials
from muniment_server.monitor.status import status_of
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.driver_errors import location_of
from muniment_server.transport.incoming import Incoming

_LOG = logging.getLogger("muniment.calls")
_Admit: TypeAlias = Callable[[Incoming, HostIdentity | SessionIdentity], None]
_MAX_TOGETHER = 500
_MAX_WAITING = 10_000
"""Only while the database does not answer, more than a few wait."""
_PAUSE = 0.002
"""Seconds between two queries."""
_QUERY_SECONDS = 5.0
_REPORT_SECONDS = 10.0


class Verification:
    """Finds out whether the tokens of calls are valid, and lets those calls in."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._waiting: list[tuple[Incoming, _Admit]] = []
        self._wake = threading.Condition()
        self._stopped = False
        self._refusals = Refusals()

    def verify(self, call: Incoming, admit: _Admit) -> None:
        """Call *admit* with *call* and its principal, later and on another thread; or refuse the call."""
        with self._wake:
            if has_room := len(self._waiting) < _MAX_WAITING:
                self._waiting.append((call, admit))
                self._wake.notify()
        if not has_room:
            call.refuse(_OVERLOADED)

    def refuse(self, call: Incoming) -> None:
        """Refuse a call without a valid credential. All of them look alike."""
        call.refuse(_UNAUTHENTICATED)
        self._refusals.count()

    def start(self) -> None:
        """Start to look tokens up."""
        threading.Thread(target=self._work, name="verification", daemon=True).start()

    def stop(self) -> None:
        """Stop. Calls that wait are left to the server, which ends them."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._stopped)
                if self._stopped:
                    return
                together, self._waiting = self._waiting[:_MAX_TOGETHER], self._waiting[_MAX_TOGETHER:]
            self._look_up(together)
            time.sleep(_PAUSE)

    def _look_up(self, together: list[tuple[Incoming, _Admit]]) -> None:
        tokens = {call.token for call, _ in together if call.token is not None}
        try:
            principals = self._credentials.look_up(tokens, Deadline(_QUERY_SECONDS))
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread must go on
            if not isinstance(error, MunimentError):
                _LOG.error("tokens could not be looked up: %s\n%s", type(error).__name__, location_of(error))
            for call, _ in together:
                call.refuse(status_of(error))
            return
        for call, admit in together:
            principal = principals.get(call.token) if call.token is not None else None
            if principal is None:
                self.refuse(call)
            else:
                call.guarded(partial(admit, call, principal))


class Refusals:
    """Counts calls without a valid credential. A line for each would let anybody fill the disk."""

    def __init__(self) -> None:
        self._number = 0
        self._since = 0.0

    def count(self) -> None:
        """Count one; log the sum from time to time."""
        self._number += 1
        now = time.monotonic()
        if now - self._since >= _REPORT_SECONDS:
            _LOG.warning("UNAUTHENTICATED: %d calls without a valid credential", self._number)
            self._number, self._since = 0, now


_OVERLOADED = status_of(Overloaded())
_UNAUTHENTICATED = status_of(Unauthenticated())
