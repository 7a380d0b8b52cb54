"""The time limits for callers who make the server wait: for a message, or for an answer to be read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from muniment_server.domain.errors import Unavailable
from muniment_server.transport.incoming import Incoming, Rejection, nothing

RECEIVE_SECONDS = 3.0
"""The limit for the message of a call."""
RECEIVE_SECONDS_IN_STREAM = 10.0
"""The limit for the next message of a stream."""
SEND_SECONDS = 10.0
"""The limit for reading an answer."""
_CHECK_INTERVAL = 0.5
_UNAVAILABLE = Rejection(Unavailable())


class Cutoff:
    """Cuts off callers who take too long."""

    def __init__(self) -> None:
        self._waiting: dict[Incoming, tuple[float, Callable[[], None]]] = {}
        self._stopped = threading.Event()

    def expect_message(self, call: Incoming, too_late: Callable[[], object] = nothing) -> None:
        """Refuse *call* unless its message arrives in time. Then nothing has been done, and it may be sent again.

        *too_late* is called before.
        """

        def refuse() -> None:
            too_late()
            call.refuse(_UNAVAILABLE)

        self._expect(call, RECEIVE_SECONDS, refuse)

    def expect_next(self, call: Incoming) -> None:
        """Cut *call*, a stream, off unless its next message arrives in time."""
        self._expect(call, RECEIVE_SECONDS_IN_STREAM, call.cancel)

    def expect_reader(self, call: Incoming) -> None:
        """Cut *call* off unless its answer is read in time."""
        self._expect(call, SEND_SECONDS, call.cancel)

    def clear(self, call: Incoming) -> bool:
        """The caller has done its part. False if nothing is expected of it: it may have been too late."""
        return self._waiting.pop(call, None) is not None

    def _expect(self, call: Incoming, seconds: float, otherwise: Callable[[], None]) -> None:
        """Replaces what was expected of the call before."""
        self._waiting[call] = (time.monotonic() + seconds, otherwise)

    def start(self) -> None:
        """Start cutting off callers."""
        threading.Thread(target=self._watch, name="cutoff", daemon=True).start()

    def stop(self) -> None:
        """Stop cutting off callers."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL):
            now = time.monotonic()
            # Not the items: each new pair may start the collector, and with it other threads, which change the dict.
            for call in list(self._waiting):
                latest, otherwise = self._waiting.get(call, (now, nothing))
                if latest < now and self.clear(call):
                    call.guarded(otherwise)
