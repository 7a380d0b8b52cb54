"""Hardening of processes: those that hold plaintext, and those that accept connections."""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4
_MOST_FILES = 2**16


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


def allow_many_connections() -> None:
    """Let this process and its children open as many files as the hard limit allows, up to 65,536.

    A worker that has reached the limit accepts no connection, even if one caller opened all the others. A shell's limit
    is often 1,024.
    """
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, most), hard))
