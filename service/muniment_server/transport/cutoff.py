"""The time limits for callers who make the server wait: for a message, or for an answer to be read."""

from __future__ import annotations

import threading
import time

from muniment_server.transport.incoming import Incoming

RECEIVE_SECONDS = 3.0
"""The limit for the message of a call."""
RECEIVE_SECONDS_IN_STREAM = 10.0
"""The limit for the next message of a stream."""
SEND_SECONDS = 10.0
"""The limit for reading an answer."""
_CHECK_INTERVAL = 0.5


class Cutoff:
    """Cuts off callers who take too long."""

    def __init__(self) -> None:
        self._waiting: dict[Incoming, float] = {}
        self._stopped = threading.Event()

    def expect(self, call: Incoming, seconds: float) -> None:
        """Cut *call* off in so many seconds. Replaces what was said of it before."""
        self._waiting[call] = time.monotonic() + seconds

    def clear(self, call: Incoming) -> None:
        """The caller has done its part."""
        self._waiting.pop(call, None)

    def start(self) -> None:
        """Start cutting off callers."""
        threading.Thread(target=self._watch, name="cutoff", daemon=True).start()

    def stop(self) -> None:
        """Stop cutting off callers."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL):
            now = time.monotonic()
            for call, latest in list(self._waiting.items()):
                if latest < now:
                    call.guarded(call.cancel)
