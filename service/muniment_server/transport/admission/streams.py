"""Calls with threads of their own, since they may last long: those with a stream of messages, and erasures.

A stream holds a turn only while there is something to store, so one that waits for its caller delays no other. An
erasure gives way before each batch.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from muniment_server.transport.admission.cutoff import Cutoff
from muniment_server.transport.admission.shares import Claim, Shares
from muniment_server.transport.incoming import Incoming

_READ_AHEAD_BYTES = 256 * 1024


class Stream:
    """The messages of one call, and its turn."""

    def __init__(self, call: Incoming, claim: Claim, shares: Shares, cutoff: Cutoff) -> None:
        self._call = call
        self._claim = claim
        claim.work = self._begin
        self._shares = shares
        self._cutoff = cutoff
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._is_receiving = False
        self._ended = False
        self._changed = threading.Condition()
        self._may_run = threading.Event()
        self._begun = 0.0

    def next(self) -> bytes | None:
        """The next message, or None at the end. Gives up the turn while it waits."""
        with self._changed:
            self._receive()
            if not self._messages and not self._ended:
                self.pause()
                self._changed.wait_for(lambda: self._messages or self._ended)
            message = self._messages.popleft() if self._messages else None
            self._bytes -= len(message or b"")
            self._receive()
        self.resume()
        return message

    def resume(self) -> None:
        """Wait for a turn, unless there is one."""
        if not self._may_run.is_set():
            self.start(self._shares.take_turn(self._claim))
            self._may_run.wait()

    def give_way(self) -> None:
        """Give up the turn, and wait for the next one."""
        self.pause()
        self.resume()

    def pause(self) -> None:
        """Give up the turn, if there is one."""
        if self._may_run.is_set():
            self._may_run.clear()
            self.start(self._shares.end_turn(self._claim, time.monotonic() - self._begun))

    @staticmethod
    def start(claims: Sequence[Claim]) -> None:
        """Let the streams go on whose turn it is."""
        for claim in claims:
            claim.work()

    def _begin(self) -> None:
        self._begun = time.monotonic()
        self._may_run.set()

    def _receive(self) -> None:
        if not self._is_receiving and not self._ended and self._bytes < _READ_AHEAD_BYTES:
            self._is_receiving = True
            self._cutoff.expect_next(self._call)
            self._call.receive(self._arrived)

    def _arrived(self, message: bytes | None) -> None:
        self._cutoff.clear(self._call)
        with self._changed:
            self._is_receiving = False
            if message is None:
                self._ended = True
            else:
                self._messages.append(message)
                self._bytes += len(message)
                self._receive()
            self._changed.notify()
