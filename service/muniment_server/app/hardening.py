"""What a process that holds plaintext gives up."""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """No core dump of this process: neither to a file nor, on Linux, to a collector."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
