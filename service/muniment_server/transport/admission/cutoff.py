"""The time limits of calls: for their message, for their turn, and until their answer has been read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from muniment_server.transport.incoming import Incoming, nothing

RECEIVE_SECONDS = 3.0
"""The limit for the message of a call."""
RECEIVE_SECONDS_OF_HEALTH = 1.0
"""The same for a check of the health: its message arrives with its headers."""
RECEIVE_SECONDS_IN_STREAM = 10.0
"""The limit for the next message of a stream."""
TURN_SECONDS = 10.0
"""The limit for its turn to run, once its message has arrived."""
SEND_SECONDS = 10.0
"""The limit for reading an answer."""
_CHECK_INTERVAL = 0.5


class Cutoff:
    """Cuts off callers who take too long."""

    def __init__(self) -> None:
        self._waiting: dict[Incoming, tuple[float, Callable[[], None]]] = {}
        self._stopped = threading.Event()

    def expect_message(self, call: Incoming, too_late: Callable[[], None]) -> None:
        """Call *too_late* unless the message of *call* arrives in time."""
        self._expect(call, RECEIVE_SECONDS if call.record is not None else RECEIVE_SECONDS_OF_HEALTH, too_late)

    def expect_turn(self, call: Incoming, too_late: Callable[[], None]) -> None:
        """Call *too_late* after the time in which *call* should have had its turn to run."""
        self._expect(call, TURN_SECONDS, too_late)

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
