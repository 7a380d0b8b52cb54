"""When a process that has died may be started again."""

from __future__ import annotations

import time

_FIRST_DELAY = 0.1
_LONGEST_DELAY = 10.0
_STABLE_SECONDS = 60.0
"""After a process has run for that long, the delays begin anew."""


class Backoff:
    """The first start is immediate. Each further one is delayed for twice as long."""

    def __init__(self) -> None:
        self._delay = 0.0
        self._not_before = 0.0

    def allows_start(self) -> bool:
        """Whether to start it now. If so, the next start is delayed."""
        now = time.monotonic()
        if now < self._not_before:
            return False
        is_stable = now - self._not_before > _STABLE_SECONDS
        self._delay = _FIRST_DELAY if is_stable else min(_LONGEST_DELAY, max(_FIRST_DELAY, 2 * self._delay))
        self._not_before = now + self._delay
        return True
