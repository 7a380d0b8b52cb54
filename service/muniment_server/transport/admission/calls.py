"""A call that was let in, from its admission to its end.

| state | what it waits for | what happens then |
|---|---|---|
| admitted | its turn to be received | its message is received |
| receiving | its message, for 3 seconds in all | it is counted with its bytes, and queued |
| queued | its turn to run, for 10 seconds | a thread runs it |
| running | its answer | it is sent |
| answered | its caller, who reads the answer | all that it holds is free again |

It ends in each of them if its caller goes away, or takes too long. A stream has one thread for all of it, which gives
its turn up while it waits for the next message.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import TypeVar

from muniment_server.domain.errors import Overloaded, Unavailable
from muniment_server.postgres.driver_errors import location_of
from muniment_server.transport.admission.cutoff import Cutoff
from muniment_server.transport.admission.shares import RECEIVING, RUNNING, Claim, Shares, start
from muniment_server.transport.incoming import Behavior, Incoming, Rejection, nothing

_LOG = logging.getLogger("muniment.server")
_OVERLOADED = Rejection(Overloaded())
_UNAVAILABLE = Rejection(Unavailable())
_READ_AHEAD_BYTES = 256 * 1024
_S = TypeVar("_S")


class Admitted(Claim):
    """What a call holds until both its work and its RPC have ended.

    A caller may go away while the work is under way, and an answer may be unread long after the work has been done.
    """

    __slots__ = ("_behavior", "_call", "_cutoff", "_shares")

    def __init__(self, call: Incoming, behavior: Behavior, shares: Shares, cutoff: Cutoff, *, writes: bool) -> None:
        super().__init__(writes=writes)
        self._call = call
        self._behavior = behavior
        self._shares = shares
        self._cutoff = cutoff

    def enter(self, keys: Sequence[Hashable]) -> bool:
        """Let it in, counted for *keys*; or refuse it, and return False."""
        if not self._shares.admit(self, keys):
            self._call.refuse(_OVERLOADED)
            return False
        if not self._call.on_end(self._ended):
            self._ended()
        return True

    def run(self) -> None:
        """Run it on this thread."""
        self._call.run(self._behavior, self._sending)

    def _sending(self, byte_count: int) -> None:
        self._shares.hold_answer(self, byte_count)
        self._cutoff.expect_reader(self._call)

    def _refuse(self, rejection: Rejection) -> None:
        """Refuse it. Like an answer, the status has to be read in time."""
        self._call.refuse(rejection)
        self._cutoff.expect_reader(self._call)
        self.finish()

    def _ended(self) -> None:
        """The RPC has ended."""
        self.finish()

    def finish(self) -> None:
        """Its work has ended, or its RPC."""
        start(self._shares.finish(self))
        if not self.unfinished:
            self._cutoff.clear(self._call)
            self._call.next_message = nothing  # a cycle of references would keep it until the collector runs


class AdmittedCall(Admitted):
    """A call with one message, in the order of its states."""

    __slots__ = ("_pool",)

    def __init__(self, call: Incoming, behavior: Behavior, pool: CallPool, cutoff: Cutoff, *, writes: bool) -> None:
        super().__init__(call, behavior, pool.shares, cutoff, writes=writes)
        self._pool = pool

    def receive(self) -> None:
        """Have its message received when it is its turn, within the time limit; then have it run."""
        self._cutoff.expect_message(self._call, self._not_received)
        self._wait(RECEIVING)

    def start(self) -> None:
        """Its turn has come."""
        if self.stage == RUNNING:
            self._pool.run(self)
        else:
            self._call.receive(self._received)

    def _received(self, message: bytes | None) -> None:
        is_in_time = self._cutoff.clear(self._call)
        start(self._shares.end_turn(self, RECEIVING))
        if is_in_time:
            self.queue(message)
        else:
            self.finish()

    def _not_received(self) -> None:
        """Its turn ends now, whatever grpc still does with it: a peer that reads nothing keeps it busy for long."""
        if self._shares.withdraw(self):
            self._refuse(_UNAVAILABLE)
        else:
            start(self._shares.end_turn(self, RECEIVING))
            self._call.refuse(_UNAVAILABLE)

    def queue(self, message: bytes | None) -> None:
        """Have it run when it is its turn, or refuse it. *message* is None if it is refused whatever it says."""
        self._call.next_message = lambda: message
        if not self._shares.receive(self, len(message or b"")):
            return self._refuse(_OVERLOADED)
        self._cutoff.expect_turn(self._call, self._had_no_turn)
        self._wait(RUNNING)

    def _had_no_turn(self) -> None:
        """Refused if it still waits."""
        if self._shares.withdraw(self):
            self._refuse(_OVERLOADED)

    def _wait(self, stage: int) -> None:
        start(self._shares.take_turn(self, stage))
        if self.unfinished == 1:  # its RPC has ended meanwhile
            self._stop_waiting()

    def _ended(self) -> None:
        self.finish()
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        """Its RPC has ended. If it waited on, many could pile up."""
        if self._shares.withdraw(self):
            self._call.record_canceled()
            self.finish()


class CallPool:
    """Threads for calls of one sort, and the shares of their callers."""

    def __init__(self, name: str, threads: int, shares: Shares) -> None:
        self.shares = shares
        self._ready: SimpleQueue[AdmittedCall | None] = SimpleQueue()
        self._threads = threads
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def run(self, call: AdmittedCall) -> None:
        """Run *call*, whose turn it is, on a thread."""
        self._ready.put(call)

    def stop(self) -> None:
        """End the threads, once they have run what waits."""
        for _ in range(self._threads):
            self._ready.put(None)

    def _work(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Run the next call, and those whose turn comes by that. False: the thread is to end."""
        call: Claim | None = self._ready.get()
        if call is None:
            return False
        while call is not None:
            call = self._run(call)
        return True

    def _run(self, call: Claim) -> Claim | None:
        """Run one call. Returns one whose turn it is now: this thread is awake, and others need not be woken for it."""
        try:
            call.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread must go on
            _LOG.error("a call has failed: %s\n%s", type(error).__name__, location_of(error))
        ready = self.shares.end_turn(call, RUNNING)
        call.finish()
        start(ready[1:])
        return ready[0] if ready else None


class AdmittedStream(Admitted):
    """A call with a thread of its own, since it may last long: one with a stream of messages, or an erasure.

    It has a turn only while it stores or erases a batch. So others have theirs after each batch, and a call that waits
    for its caller delays none.
    """

    __slots__ = ("_bytes", "_changed", "_has_all", "_is_receiving", "_may_run", "_messages")

    def __init__(self, call: Incoming, behavior: Behavior, shares: Shares, cutoff: Cutoff, *, writes: bool) -> None:
        super().__init__(call, behavior, shares, cutoff, writes=writes)
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._is_receiving = False
        self._has_all = False
        self._changed = threading.Condition()
        self._may_run = threading.Event()

    def begin(self) -> None:
        """Start its thread."""
        self._call.next_message = self._next
        self._call.in_turn = self._in_turn
        try:
            if self._shares.receive(self, 0):
                return threading.Thread(target=self._work, name="stream", daemon=True).start()
        except RuntimeError:  # no more threads
            pass
        self._refuse(_OVERLOADED)

    def start(self) -> None:
        """Its turn has come."""
        self._may_run.set()

    def _work(self) -> None:
        try:
            self.run()
        finally:
            self.finish()

    def _next(self) -> bytes | None:
        """The next message, or None at the end."""
        with self._changed:
            self._receive()
            self._changed.wait_for(lambda: self._messages or self._has_all)
            message = self._messages.popleft() if self._messages else None
            self._bytes -= len(message or b"")
            self._receive()
        return message

    @contextmanager
    def _in_turn(self, scope: AbstractContextManager[_S]) -> Iterator[_S]:
        """Wait for a turn, and keep it until *scope* has ended."""
        start(self._shares.take_turn(self, RUNNING))
        self._may_run.wait()
        try:
            with scope as entered:
                yield entered
        finally:
            self._may_run.clear()
            start(self._shares.end_turn(self, RUNNING))

    def _receive(self) -> None:
        if not self._is_receiving and not self._has_all and self._bytes < _READ_AHEAD_BYTES:
            self._is_receiving = True
            self._cutoff.expect_next(self._call)
            self._call.receive(self._received)

    def _received(self, message: bytes | None) -> None:
        self._cutoff.clear(self._call)
        with self._changed:
            self._is_receiving = False
            if message is None:
                self._has_all = True
            else:
                self._messages.append(message)
                self._bytes += len(message)
                self._receive()
            self._changed.notify()
