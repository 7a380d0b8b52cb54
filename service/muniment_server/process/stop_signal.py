"""A signal that a process should stop: set by a signal handler or another thread, awaited by one thread."""

from __future__ import annotations

import queue


class StopSignal:
    """A flag that a signal handler may set, whatever code it interrupts, because SimpleQueue is reentrant.

    threading.Event is not: a handler that interrupts its `wait` deadlocks on the lock that `wait` holds.
    """

    def __init__(self) -> None:
        self._requests = queue.SimpleQueue[None]()
        self._set = False

    def set(self) -> None:
        """Request the stop."""
        self._requests.put(None)

    def is_set(self) -> bool:
        """Whether to stop. Only for the thread that waits."""
        return self.wait(0.0)

    def wait(self, seconds: float) -> bool:
        """Wait up to *seconds* for the signal; return whether to stop. Only for one thread."""
        if not self._set:
            try:
                self._requests.get(timeout=seconds)
                self._set = True
            except queue.Empty:
                pass
        return self._set
