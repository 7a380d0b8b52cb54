"""Whether the database's disk has room for more.

The embedded Postgres dies when its disk is full, and every start would be another crash recovery. So what stores texts
stops before: the rest is for what must go on, such as raising a taint. Of a Postgres elsewhere only its errors tell.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

LEAST_FREE = 256 * 1024 * 1024
"""Bytes."""
_HOLD_SECONDS = 30.0
_LOG = logging.getLogger("muniment.database")


class Disk:
    """The disk of one database.

    Once full, it counts as full for half a minute. What a higher caller does can change how much is free, and a lower
    one sees whether it is full: this way no more than once in that time.
    """

    def __init__(self, directory: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """*directory* is that of the embedded database. None: the database is elsewhere."""
        self._directory = directory
        self._clock = clock
        self._full_until = 0.0

    @property
    def is_full(self) -> bool:
        """Whether nothing should be stored now."""
        if self._clock() < self._full_until:
            return True
        if self._directory is None or free_bytes(self._directory) >= LEAST_FREE:
            return False
        self.report_full()
        return True

    def report_full(self) -> None:
        """Count the disk as full from now on: Postgres says so."""
        if self._clock() < self._full_until:
            return
        self._full_until = self._clock() + _HOLD_SECONDS
        _LOG.error("the disk of the database is full, or nearly so: nothing is stored until there is room")


def free_bytes(directory: Path) -> int:
    """The bytes that are free for a user other than root, as Postgres is. If *directory* is gone: where it would be."""
    try:
        found = os.statvfs(directory)
    except FileNotFoundError:
        return free_bytes(directory.absolute().parent)
    return found.f_bavail * found.f_frsize
