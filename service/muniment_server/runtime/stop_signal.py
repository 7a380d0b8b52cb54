"""When a process is to end: set from a signal's handler or another thread, awaited by one."""

from __future__ import annotations

import queue


class StopSignal:
    """What a handler may set, whatever it interrupts, like a SimpleQueue.

    In a threading.Event it would wait for ever for the lock of the wait that it interrupted.
    """

    def __init__(self) -> None:
        self._asked = queue.SimpleQueue[None]()
        self._set = False

    def set(self) -> None:
        """From now on it is time to end."""
        self._asked.put(None)

    def is_set(self) -> bool:
        """Whether it is time to end. For the thread that waits."""
        return self.wait(0.0)

    def wait(self, seconds: float) -> bool:
        """Whether it is time to end, now or within *seconds*. For one thread."""
        if not self._set:
            try:
                self._asked.get(timeout=seconds)
                self._set = True
            except queue.Empty:
                pass
        return self._set
