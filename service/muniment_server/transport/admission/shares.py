"""What each caller may have under way, and whose call runs next.

A call belongs to a share: a session, of an agent at one level, of a tenant; or a host key, of a tenant. A `Share` is a
node of that tree, and exists while it has calls under way.

* Room: one session may have a twelfth of the whole under way, one agent at one level a sixth, one host key a sixth.
  These bounds are fixed: until the server is nearly full, whether a call is let in depends on nothing that other
  levels, agents or tenants do. Four levels of an agent are two thirds, and the server is nearly full when three
  quarters are under way, so no agent alone gets it there. From then on the same parts are those of what is left, and
  one tenant gets twice what is left. What is left counts in powers of two: it changes in few, coarse steps.
  Calls without their message, other calls, bytes of requests and bytes of answers are counted apart. Whoever leaves
  answers unread gets no turn until they have been read.
* Turns: who has fewest calls running goes first, then who has used least time; tenants are compared first, then the
  agents of a tenant, then the sessions of an agent. So whoever sends a thousand calls delays only their own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from operator import truediv
from typing import NamedTuple

_PARTS = (2, 1 / 6, 1 / 12)
"""Which part of the room one tenant, one agent at one level and one session may have."""
_WRITES = 2
"""How many small writes of one session run at once: while one of them has the session's row, the other is prepared. A
large one runs alone, or a raise of the taint would wait for both."""
_SMALL_BYTES = 16 * 1024
ARRIVING, CALLS, REQUESTS, ANSWERS = KINDS = range(4)
"""What is counted: calls whose message has not arrived; calls that wait, run, or whose answers are unread; bytes of
requests; and bytes of answers that are being made or are unread."""
_HELD = "{} calls arriving, {} others, {} bytes of requests, {} of answers"


def room(most: int, held: int) -> int:
    """What parts are taken from: *most* until three quarters of it are held, then what is left, as a power of two."""
    left = most - held
    return most if 4 * left > most else 1 << max(0, left).bit_length() >> 1


def _fits(held: int, count: int, most: float) -> bool:
    """Whether a share may have *count* more. One that holds none always may."""
    return not held or held + count <= most


def _nothing() -> None:
    pass


def _none_of_each() -> list[int]:
    return [0, 0, 0, 0]


@dataclass(slots=True, eq=False)
class Share:
    """A tenant, an agent at one level, a session or a host key with calls under way. The root has all of them."""

    parent: Share | None = None
    key: Hashable = None
    held: list[int] = field(default_factory=_none_of_each)
    """How much it has of each kind."""
    waiting: int = 0
    running: int = 0
    seconds: float = 0.0
    """The time that its calls have run, on top of what whoever had used least had when it came."""
    writing: int = 0
    parts: dict[Hashable, Share] = field(default_factory=dict)
    queue: deque[Claim] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class Claim:
    """One call: what it has of the share of its session, of that of its agent, and so on."""

    shares: Sequence[Share]
    """From the root down."""
    writes: bool
    """Writes of one session wait for one another's row: in the queue, so that they do not wait on threads."""
    held: list[int] = field(default_factory=_none_of_each)
    unfinished: int = 2
    """Its work, and its RPC."""
    work: Callable[[], None] = _nothing
    """What to do when it is its turn."""
    finish: Callable[[], None] = _nothing
    """What to do when its turn has ended."""

    @property
    def weight(self) -> int:
        """For how many small writes it counts, if it writes."""
        return 1 if self.held[REQUESTS] <= _SMALL_BYTES else _WRITES


class Load(NamedTuple):
    """What is under way."""

    in_flight: int
    """Calls whose message is awaited, that run or wait, or whose answers are unread."""
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
        max_bytes: int,
        max_answer: int,
    ) -> None:
        """*max_answer* are the bytes that an answer may have."""
        self._turns = self._free = turns
        of_session = max(1, turns // 2)
        self._turn_limits = (turns_of_tenant, turns_of_tenant, of_session)
        """How many turns one tenant, one agent and one session may have at once."""
        self._max_answer = max_answer
        max_answers = max(1, round((of_session + 0.5) * max_answer / _PARTS[-1]))
        self._most = [max_calls, max_calls, max_bytes, max_answers]
        """How much of each kind there may be. One session's part of the answers lets it use its turns, and have half a
        long answer unread meanwhile."""
        self.was_nearly_full = False
        """Whether a call has found it nearly full. Whoever reads this sets it back."""
        self._root = Share()
        self._progress = time.monotonic()
        """When a turn ended last, or the queue was empty."""
        self._lock = threading.Lock()

    def admit(self, keys: Sequence[Hashable], *, writes: bool) -> Claim | None:
        """Count one more call, until it has finished twice. None: its caller has enough under way; refuse it."""
        with self._lock:
            shares = [self._root]
            for key in keys:
                shares.append(shares[-1].parts.get(key) or self._new(shares[-1], key))
            claim = Claim(shares, writes)
            if not self._hold(claim, ARRIVING, 1):
                self._forget_idle(shares)
                return None
            return claim

    def receive(self, claim: Claim, byte_count: int) -> bool:
        """The message of a call has arrived, with so many bytes. False: its caller holds enough; refuse it."""
        with self._lock:
            if not (self._hold(claim, CALLS, 1) and self._hold(claim, REQUESTS, byte_count)):
                return False
            self._set(claim, ARRIVING, 0)
            return True

    def hold_answer(self, claim: Claim, byte_count: int) -> None:
        """Count the bytes of a call's answer, until it has been read. Where no answer has many, none is counted."""
        with self._lock:
            self._set(claim, ANSWERS, min(byte_count, self._max_answer))

    def finish(self, claim: Claim) -> Sequence[Claim]:
        """The work of a call has ended, or its RPC. Once both have, it is not counted any more.

        Returns those whose turn it is now: they waited until answers were read.
        """
        with self._lock:
            claim.unfinished -= 1
            if claim.unfinished:
                return ()
            for kind in KINDS:
                self._set(claim, kind, 0)
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
        """For how long all turns have been taken while calls wait. 0 if none waits, or a turn is free."""
        return time.monotonic() - self._progress if self._root.waiting and not self._free else 0.0

    @property
    def load(self) -> Load:
        """What is under way now."""
        arriving, calls, *byte_counts = self._root.held
        return Load(arriving + calls, self._root.waiting, self._turns - self._free, sum(byte_counts))

    def holders(self) -> list[str]:
        """The three agents at one level, or keys, that hold most of a kind, and how much of each kind."""
        with self._lock:
            parts = [(tenant, part) for tenant in self._root.parts.values() for part in tenant.parts.values()]
            parts.sort(key=lambda each: -max(map(truediv, each[1].held, self._most)))
            return [f"tenant {tenant.key}, {part.key}: {_HELD.format(*part.held)}" for tenant, part in parts[:3]]

    def _granted(self) -> list[Claim]:
        """Take the turns that are free."""
        granted: list[Claim] = []
        while self._free and self._root.waiting and (claim := self._next(self._root, 0)) is not None:
            self._free -= 1
            self._set(claim, ANSWERS, self._max_answer)
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
        most_unread = _PARTS[depth] * self._room(ANSWERS)
        able = [
            part
            for part in share.parts.values()
            if part.waiting
            and part.running < self._turn_limits[depth]
            and _fits(part.held[ANSWERS], self._max_answer, most_unread)
        ]
        if len(able) > 1:
            able.sort(key=lambda part: (part.running, part.seconds))
        for part in able:
            if (claim := self._next(part, depth + 1)) is not None:
                return claim
        return None

    def _hold(self, claim: Claim, kind: int, count: int) -> bool:
        """Count so much more of a kind for *claim*, if there is room for it."""
        root, *parts = claim.shares
        if root.held[kind] + count > self._most[kind]:
            return False
        left = self._room(kind)
        for share, part in zip(parts, _PARTS, strict=False):
            if not _fits(share.held[kind], count, part * left):
                return False
        self._set(claim, kind, count)
        return True

    def _room(self, kind: int) -> int:
        """The room of one kind. Notes if the server is nearly full."""
        left = room(self._most[kind], self._root.held[kind])
        if left < self._most[kind]:
            self.was_nearly_full = True
        return left

    @staticmethod
    def _set(claim: Claim, kind: int, count: int) -> None:
        """Count so much of a kind for *claim*, instead of what was counted before."""
        if change := count - claim.held[kind]:
            claim.held[kind] = count
            for share in claim.shares:
                share.held[kind] += change

    @staticmethod
    def _new(parent: Share, key: Hashable) -> Share:
        least = min((other.seconds for other in parent.parts.values()), default=0.0)
        share = parent.parts[key] = Share(parent, key, seconds=least)
        return share

    @staticmethod
    def _forget_idle(shares: Sequence[Share]) -> None:
        for share in reversed(shares):
            if share.parent is not None and not share.parts and not any(share.held):
                del share.parent.parts[share.key]
