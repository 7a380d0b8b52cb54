"""Hardening of the processes that hold plaintext."""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Disable core dumps of this process, to files and, on Linux, to a collector.

    The limit is one byte, not zero: that is too small for a file, and at zero Linux would still feed a collector.
    A hard limit that is already zero stays, because only root could raise it.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    lowest = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (lowest, lowest))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
