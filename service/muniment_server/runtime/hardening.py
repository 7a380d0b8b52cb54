"""What a process that holds plaintext gives up."""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """No core dump of this process: neither to a file nor, on Linux, to a collector.

    One byte is too small for a file, and Linux then feeds no collector either; at 0 it would. A limit that is
    0 already stays 0: only root could raise it.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    lowest = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (lowest, lowest))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
