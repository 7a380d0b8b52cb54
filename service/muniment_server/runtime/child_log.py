"""Relays what a worker that serves TLS writes to standard error, without gRPC's own lines.

gRPC writes a line for each handshake that fails, so anyone who can connect could fill the log. Here they become lines
of the server's log, and repeats are summed up. gRPC's other lines are dropped, because they may quote what was sent.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from contextlib import suppress
from typing import IO

from muniment_server.telemetry.logs import fields
from muniment_server.telemetry.repeats import Repeats

_LOG = logging.getLogger("muniment.tls")
_OF_GRPC = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\.cc:\d+\] (?P<text>.*)")
_HANDSHAKE = re.compile(r"Handshake failed with error \w+(?:: error:\w+:[\w ]*:\w*:(?P<cause>[A-Z0-9_]{1,64}))?")


class ChildLog:
    """Passes on what a child writes, on a thread of its own, until the child ends."""

    def __init__(self, stream: IO[str], onto: IO[str] | None = None) -> None:
        self._stream = stream
        self._onto = onto or sys.stderr
        self._repeats = Repeats()
        threading.Thread(target=self._relay, name="child-log", daemon=True).start()

    def report_repeats(self) -> None:
        """Log how often handshakes failed again. To be called from time to time."""
        for key, count in self._repeats.ended():
            _LOG.info("TLS handshake failed again", extra=fields(**dict(key), times=count))

    def _relay(self) -> None:
        with self._stream:
            for line in self._stream:
                found = _OF_GRPC.match(line)
                if found is None:
                    with suppress(OSError):  # the disk has no room for this line; it may have for later ones
                        self._onto.write(line)
                        self._onto.flush()
                elif handshake := _HANDSHAKE.match(found["text"]):
                    self._count(handshake["cause"] or "UNKNOWN")

    def _count(self, cause: str) -> None:
        if self._repeats.is_first((("cause", cause),)):
            _LOG.info("TLS handshake failed", extra=fields(cause=cause))
