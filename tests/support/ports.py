"""Ports for servers that must listen at one that is known before, or at the same one again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _LAST = 20_000, 32_000


def free_port() -> int:
    """A free port of 127.0.0.1, outside of the range from which the system chooses ports.

    One from that range could be given to another test before the server listens on it, or between two of its starts.
    """
    last = min(_LAST, int(_RANGE.read_text().split()[0]) - 1) if _RANGE.exists() else _LAST
    source = random.SystemRandom()  # workers of pytest must not choose alike
    while True:
        port = source.randint(min(_FIRST, last - 1000), last)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
