"""What each caller may have under way, and whose call runs next.

A call belongs to a share: a session, of an agent, of a tenant; or a host key, of a tenant. A `Share` is a node of that
tree, and exists while it has calls under way.

* Room: one session may have half as much under way as is left, an agent twice as much, a tenant four times. So the
  more is under way, the less each may have, and a newcomer finds room: one session alone gets a third, one agent two
  thirds, one tenant four fifths.
  What is counted are calls and bytes. Whoever leaves answers unread gets no turn until they have been read.
* Turns: who has fewest calls running goes first, then who has used least time; tenants are compared first, then the
  agents of a tenant, then the sessions of an agent. So whoever sends a thousand calls delays only their own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_ROOM = (4.0, 2.0, 0.5)
"""How many times what is left one tenant, one agent and one session may have."""
_WRITES = 2
"""How many small writes of one session run at once: while one of them has the session's row, the other is prepared. A
large one runs alone, or a raise of the taint would wait for both."""
_SMALL_BYTES = 16 * 1024


@dataclass(slots=True, eq=False)
class Share:
    """A tenant, an agent, a session or a host key with calls under way. The root has all of them."""

    parent: Share | None = None
    key: Hashable = None
    calls: int = 0
    answered: int = 0
    """The calls whose answers are being sent."""
    byte_count: int = 0
    """The bytes of its requests and answers that are in memory."""
    unread: int = 0
    """Those of its answers."""
    waiting: int = 0
    running: int = 0
    seconds: float = 0.0
    """The time that its calls have run, on top of what whoever had used least had when it came."""
    writing: int = 0
    parts: dict[Hashable, Share] = field(default_factory=dict)
    queue: deque[Claim] = field(default_factory=deque)


def _nothing() -> None:
    pass


@dataclass(slots=True, eq=False)
class Claim:
    """One call: what it has of the share of its session, of that of its agent, and so on."""

    shares: Sequence[Share]
    """From the root down."""
    writes: bool
    """Writes of one session wait for one another's row: in the queue, so that they do not wait on threads."""
    request_bytes: int = 0
    answer_bytes: int = 0
    """Those of its answer: while it runs, the most that it may have."""
    is_answered: bool = False
    unfinished: int = 2
    """Its work, and its RPC."""
    work: Callable[[], None] = _nothing
    """What to do when it is its turn."""
    finish: Callable[[], None] = _nothing
    """What to do when its turn has ended."""

    @property
    def weight(self) -> int:
        """For how many small writes it counts, if it writes."""
        return 1 if self.request_bytes <= _SMALL_BYTES else _WRITES


class Load(NamedTuple):
    """What is under way."""

    in_flight: int
    """Calls that run, wait, or whose answers are unread."""
    queued: int
    running: int
    byte_count: int


class Shares:
    """Admits calls, and hands out turns: a fixed number at once."""

    def __init__(
        self,
        *,
        turns: int,
        turns_of_tenant: int,
        max_calls: int,
        max_calls_of_one: int,
        max_bytes: int,
        max_answer: int,
    ) -> None:
        """*max_calls_of_one* is for one session, or one key; *max_answer* are the bytes that an answer may have."""
        self._turns = self._free = turns
        self._turn_limits = (turns_of_tenant, turns_of_tenant, max(1, turns // 2))
        """How many turns one tenant, one agent and one session may have at once."""
        self._max_answer = max_answer
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._max_calls_of_one = max_calls_of_one
        self._root = Share()
        self._progress = time.monotonic()
        """When a turn ended last, or the queue was empty."""
        self._lock = threading.Lock()

    def admit(self, keys: Sequence[Hashable], *, writes: bool) -> Claim | None:
        """Count one more call, until it has finished twice. None: its caller has enough under way; refuse it."""
        with self._lock:
            share = self._root
            calls_left = self._max_calls - share.calls
            shares, has_room = [share], True
            for key, room in zip(keys, _ROOM, strict=False):
                share = share.parts.get(key) or self._new(share, key)
                shares.append(share)
                has_room = has_room and share.calls < room * calls_left
            has_room = has_room and share.calls - share.answered < self._max_calls_of_one
            if not has_room or not self._has_room(shares, 0):
                self._forget_idle(shares)
                return None
            for share in shares:
                share.calls += 1
            return Claim(shares, writes)

    def hold_request(self, claim: Claim, byte_count: int) -> bool:
        """Count the bytes of a call's message, until it has finished. False: its caller holds enough; refuse it."""
        with self._lock:
            if not self._has_room(claim.shares, byte_count):
                return False
            claim.request_bytes = byte_count
            for share in claim.shares:
                share.byte_count += byte_count
            return True

    def answer(self, claim: Claim) -> None:
        """The answer of a call is about to be sent: once its caller has it, another call may take its place."""
        with self._lock:
            claim.is_answered = True
            claim.shares[-1].answered += 1

    def hold_answer(self, claim: Claim, byte_count: int) -> None:
        """Count the bytes of a call's answer, until it has been read."""
        with self._lock:
            self._count_answer(claim, byte_count)

    def finish(self, claim: Claim) -> Sequence[Claim]:
        """The work of a call has ended, or its RPC. Once both have, it is not counted any more.

        Returns those whose turn it is now: they waited until answers were read.
        """
        with self._lock:
            claim.unfinished -= 1
            if claim.unfinished:
                return ()
            self._count_answer(claim, 0)
            claim.shares[-1].answered -= claim.is_answered
            for share in claim.shares:
                share.calls -= 1
                share.byte_count -= claim.request_bytes
            self._forget_idle(claim.shares)
            claim.work = claim.finish = _nothing  # they hold the call, and the call its message
            return self._granted()

    def take_turn(self, claim: Claim) -> Sequence[Claim]:
        """Queue *claim*. Returns those whose turn it is now: at once *claim* itself, if a turn is free for it."""
        with self._lock:
            if not self._root.waiting:
                self._progress = time.monotonic()
            for share in claim.shares:
                share.waiting += 1
            claim.shares[-1].queue.append(claim)
            return self._granted()

    def end_turn(self, claim: Claim, seconds: float) -> Sequence[Claim]:
        """The turn of *claim* has ended, which took so many seconds. Returns those whose turn it is now."""
        with self._lock:
            self._free += 1
            self._progress = time.monotonic()
            for share in claim.shares:
                share.running -= 1
                share.seconds += seconds
            if claim.writes:
                claim.shares[-1].writing -= claim.weight
            return self._granted()

    @property
    def seconds_without_progress(self) -> float:
        """For how long calls have been waiting while no turn ended. 0 if none waits."""
        return time.monotonic() - self._progress if self._root.waiting else 0.0

    @property
    def load(self) -> Load:
        """What is under way now."""
        root = self._root
        return Load(root.calls, root.waiting, self._turns - self._free, root.byte_count)

    def _granted(self) -> list[Claim]:
        """Take the turns that are free."""
        granted: list[Claim] = []
        while self._free and self._root.waiting and (claim := self._next(self._root, 0)) is not None:
            self._free -= 1
            self._count_answer(claim, self._max_answer)
            for share in claim.shares:
                share.waiting -= 1
                share.running += 1
            if claim.writes:
                claim.shares[-1].writing += claim.weight
            granted.append(claim)
        return granted

    def _next(self, share: Share, depth: int) -> Claim | None:
        """Take the next claim from the queues of *share*, unless it may not run yet."""
        if share.queue:
            first = share.queue[0]
            return None if first.writes and share.writing + first.weight > _WRITES else share.queue.popleft()
        most_unread = _ROOM[depth] * (self._max_bytes - self._root.unread)
        able = [
            part
            for part in share.parts.values()
            if part.waiting
            and part.running < self._turn_limits[depth]
            and (part.unread < most_unread or not part.unread)
        ]
        if len(able) > 1:
            able.sort(key=lambda part: (part.running, part.seconds))
        for part in able:
            if (claim := self._next(part, depth + 1)) is not None:
                return claim
        return None

    def _has_room(self, shares: Sequence[Share], byte_count: int) -> bool:
        """Whether *shares* may hold so many bytes more. Whoever holds none always may."""
        bytes_left = self._max_bytes - self._root.byte_count
        for share, room in zip(shares[1:], _ROOM, strict=False):
            if share.byte_count and share.byte_count + byte_count >= room * bytes_left:
                return False
        return True

    def _count_answer(self, claim: Claim, byte_count: int) -> None:
        """Count the answer of *claim* with so many bytes, instead of those that were counted before."""
        change = byte_count - claim.answer_bytes
        claim.answer_bytes = byte_count
        for share in claim.shares:
            share.byte_count += change
            share.unread += change

    @staticmethod
    def _new(parent: Share, key: Hashable) -> Share:
        least = min((other.seconds for other in parent.parts.values()), default=0.0)
        share = parent.parts[key] = Share(parent, key, seconds=least)
        return share

    @staticmethod
    def _forget_idle(shares: Sequence[Share]) -> None:
        for share in reversed(shares):
            if not share.calls and share.parent is not None:
                del share.parent.parts[share.key]
