"""Closes the sessions of keys that are no longer accepted."""

from __future__ import annotations

import time
from collections.abc import Callable

_UNDER_WAY_SECONDS = 2.0
"""How long calls that were accepted before may take to open a session."""


def close_twice(close: Callable[[], int]) -> int:
    """Call *close* now, and again for sessions that calls under way have opened since; return how many were closed."""
    closed = close()
    time.sleep(_UNDER_WAY_SECONDS)
    return closed + close()
