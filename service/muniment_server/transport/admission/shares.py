"""What each caller may have under way, whose message is received next, and whose call runs next.

A call belongs to a share: a session, of an agent at one level, of a tenant; or a host key, of a tenant. A `Share` is a
node of that tree, and exists while it has calls under way.

* Room: one session may have a twelfth of the whole under way, one agent at one level a sixth, one host key a sixth.
  These bounds are fixed: until the server is nearly full, whether a call is let in depends on nothing that other
  levels, agents or tenants do. Four levels of an agent are two thirds, and the server is nearly full when three
  quarters are under way, so no agent with sessions of one integrity gets it there alone. From then on the same parts
  are those of what is left, and one tenant gets twice what is left. What is left counts in powers of two: it changes in
  few, coarse steps.
  Calls without their message, other calls, bytes of requests and bytes of answers are counted apart. Whoever leaves
  answers unread gets no turn until they have been read.
* Turns, first to be received and then to run: who has fewest at once goes first, then who has used least time; tenants
  are compared first, then the agents of a tenant, then the sessions of an agent. So whoever sends a thousand calls
  delays only their own. Four levels of one agent have fewer turns to be received than their tenant, so what a session
  sends at one of them delays no other. Twenty agents of a tenant can delay one another: then the server counts as
  nearly full.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
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
RECEIVING, RUNNING = range(2)
"""What calls have turns for: that their message is received, and that they run."""
_HELD = "{} calls arriving, {} others, {} bytes of requests, {} of answers"


def room(most: int, held: int) -> int:
    """What parts are taken from: *most* until three quarters of it are held, then what is left, as a power of two."""
    left = most - held
    return most if 4 * left > most else 1 << max(0, left).bit_length() >> 1


def _fits(held: int, count: int, most: float) -> bool:
    """Whether a share may have *count* more. One that holds none always may."""
    return not held or held + count <= most


class Share:
    """A tenant, an agent at one level, a session or a host key with calls under way. The root has all of them."""

    __slots__ = ("held", "key", "parent", "parts", "queues", "seconds", "turns", "waiting", "writing")

    def __init__(self, parent: Share | None = None, key: Hashable = None) -> None:
        self.parent = parent
        self.key = key
        self.held = [0, 0, 0, 0]
        """How much it has of each kind."""
        self.waiting = [0, 0]
        """How many of its calls wait for their turn, at each stage."""
        self.turns = [0, 0]
        """How many have it."""
        self.seconds = [0.0, 0.0]
        """How long its turns have taken, on top of what whoever had used least had when it came."""
        self.writing = 0
        self.parts: dict[Hashable, Share] = {}
        self.queues: tuple[deque[Claim], deque[Claim]] = deque(), deque()


class Claim(ABC):
    """One call: what it has of the share of its session, of that of its agent, and so on."""

    __slots__ = ("begun", "held", "shares", "stage", "unfinished", "waits", "writes")

    def __init__(self, *, writes: bool) -> None:
        self.writes = writes
        """Writes of one session wait for one another's row: in the queue, so that they do not wait on threads."""
        self.shares: Sequence[Share] = ()
        """From the root down, once it has been admitted."""
        self.held = [0, 0, 0, 0]
        self.unfinished = 2
        """Its work, and its RPC."""
        self.stage: int | None = None
        """Of the turn that it has or waits for."""
        self.waits = False
        self.begun = 0.0
        """When its turn began."""

    @abstractmethod
    def start(self) -> None:
        """Its turn has come. Must not block."""

    @abstractmethod
    def run(self) -> None:
        """Do its work."""

    @abstractmethod
    def finish(self) -> None:
        """Its work has ended."""

    @property
    def weight(self) -> int:
        """For how many small writes it counts, if it writes."""
        return 1 if self.held[REQUESTS] <= _SMALL_BYTES else _WRITES


def start(claims: Sequence[Claim]) -> None:
    """Start those whose turn it is."""
    for claim in claims:
        claim.start()


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
        received: Sequence[int] = (0, 0, 0, 0),
        turns: int,
        turns_of_tenant: int | None = None,
        max_calls: int,
        max_bytes: int,
        max_answer: int,
        parts: Sequence[float] = _PARTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The totals, which the shares divide.

        *received*: how many messages are received at once: in all, of a tenant, of an agent at one level or a host key,
        and of a session. *turns*: how many calls run at once. *turns_of_tenant*: how many of them may be of one tenant;
        None means all but one. *max_calls*: how many calls there may be. *max_bytes*: how many bytes of requests.
        *max_answer*: how many bytes one answer may have. *parts*: which part of the room one tenant, one agent at one
        level and one session may have.
        """
        of_tenant, of_session = turns_of_tenant or max(1, turns - 1), max(1, turns // 2)
        self._most_turns = tuple(received), (turns, of_tenant, of_tenant, of_session)
        """How many turns all, one tenant, one agent and one session may have at once, at each stage."""
        self._parts = parts
        self._max_answer = max_answer
        max_answers = max(1, round((of_session + 0.5) * max_answer / parts[-1]))
        self._most = [max_calls, max_calls, max_bytes, max_answers]
        """How much of each kind there may be. One session's part of the answers lets it use its turns, and have half a
        long answer unread meanwhile."""
        self.was_nearly_full = False
        """Whether a call has found it nearly full. Whoever reads this sets it back."""
        self._root = Share()
        self._clock = clock
        self._progress = clock()
        """When a call last began or ended to run. When one began to wait tells less: callers give up, and return."""
        self._lock = threading.Lock()

    def admit(self, claim: Claim, keys: Sequence[Hashable]) -> bool:
        """Count one more call, until it has finished twice. False: its caller has enough under way; refuse it."""
        with self._lock:
            shares = [self._root]
            for key in keys:
                shares.append(shares[-1].parts.get(key) or self._new(shares[-1], key))
            claim.shares = shares
            if self._hold(claim, ARRIVING, 1):
                return True
            self._forget_idle(shares)
            return False

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
            return self._granted(RUNNING)

    def take_turn(self, claim: Claim, stage: int) -> Sequence[Claim]:
        """Queue *claim*. Returns those whose turn it is now: at once *claim* itself, if a turn is free for it."""
        with self._lock:
            claim.stage = stage
            if not self._root.waiting[stage] and self._is_able_to_begin(claim, stage):
                self._begin(claim, stage)
                return (claim,)
            claim.waits = True
            for share in claim.shares:
                share.waiting[stage] += 1
            claim.shares[-1].queues[stage].append(claim)
            return self._granted(stage)

    def withdraw(self, claim: Claim) -> bool:
        """Take *claim* out of its queue. False: it does not wait."""
        with self._lock:
            if not claim.waits or claim.stage is None:
                return False
            claim.shares[-1].queues[claim.stage].remove(claim)
            self._leave_queue(claim, claim.stage)
            claim.stage = None
            return True

    def end_turn(self, claim: Claim, stage: int) -> Sequence[Claim]:
        """The turn of *claim* has ended, unless that was said before. Returns those whose turn it is now."""
        with self._lock:
            if claim.stage != stage or claim.waits:
                return ()
            now = self._clock()
            for share in claim.shares:
                share.turns[stage] -= 1
                share.seconds[stage] += now - claim.begun
            claim.stage = None
            if stage == RUNNING:
                self._progress = now
                claim.shares[-1].writing -= claim.weight if claim.writes else 0
            return self._granted(stage)

    @property
    def seconds_without_progress(self) -> float:
        """The seconds since a call last began or ended to run.

        0 if no call waits, or if fewer run than one tenant may have.
        """
        is_waited_for = self._root.waiting[RUNNING] and self._root.turns[RUNNING] >= self._most_turns[RUNNING][1]
        return self._clock() - self._progress if is_waited_for else 0.0

    @property
    def load(self) -> Load:
        """What is under way now."""
        arriving, calls, *byte_counts = self._root.held
        return Load(arriving + calls, self._root.waiting[RUNNING], self._root.turns[RUNNING], sum(byte_counts))

    def holders(self) -> list[str]:
        """The three agents at one level, or keys, that hold most of a kind, and how much of each kind."""
        with self._lock:
            parts = [(tenant, part) for tenant in self._root.parts.values() for part in tenant.parts.values()]
            parts.sort(key=lambda each: -max(map(truediv, each[1].held, self._most)))
            return [f"tenant {tenant.key}, {part.key}: {_HELD.format(*part.held)}" for tenant, part in parts[:3]]

    def _granted(self, stage: int) -> list[Claim]:
        """Give the turns that are free."""
        granted: list[Claim] = []
        while (
            self._root.waiting[stage]
            and self._is_free(stage)
            and (claim := self._next(self._root, 0, stage)) is not None
        ):
            self._leave_queue(claim, stage)
            self._begin(claim, stage)
            granted.append(claim)
        if stage == RECEIVING and self._root.waiting[stage]:
            self._note_wait()
        return granted

    def _begin(self, claim: Claim, stage: int) -> None:
        claim.begun = self._clock()
        for share in claim.shares:
            share.turns[stage] += 1
        if stage == RUNNING:
            self._progress = claim.begun
            self._set(claim, ANSWERS, self._max_answer)
            claim.shares[-1].writing += claim.weight if claim.writes else 0

    def _is_able_to_begin(self, claim: Claim, stage: int) -> bool:
        """Whether there is a turn for *claim*, for which none waits."""
        _, *parts = claim.shares
        if not self._is_free(stage) or (stage == RUNNING and self._waits_for_writes(parts[-1], claim)):
            return False
        return all(self._is_able(part, depth, stage) for depth, part in enumerate(parts))

    def _is_able(self, part: Share, depth: int, stage: int) -> bool:
        """Whether *part* may have one more turn. Whoever leaves answers unread may have none to run."""
        if part.turns[stage] >= self._most_turns[stage][depth + 1]:
            return False
        return stage == RECEIVING or _fits(
            part.held[ANSWERS], self._max_answer, self._parts[depth] * self._room(ANSWERS)
        )

    def _is_free(self, stage: int) -> bool:
        """Whether anybody may have a turn."""
        return self._root.turns[stage] < self._most_turns[stage][0]

    @staticmethod
    def _leave_queue(claim: Claim, stage: int) -> None:
        claim.waits = False
        for share in claim.shares:
            share.waiting[stage] -= 1

    def _note_wait(self) -> None:
        """Messages wait. If that is for those of other agents, the server is nearly full."""
        most = self._most_turns[RECEIVING][1]
        tenants = self._root.parts.values()
        if not self._is_free(RECEIVING) or any(
            tenant.waiting[RECEIVING] and tenant.turns[RECEIVING] >= most for tenant in tenants
        ):
            self.was_nearly_full = True

    def _next(self, share: Share, depth: int, stage: int) -> Claim | None:
        """Take the next claim from the queues of *share*, unless it may not run yet.

        Of those who have no more turns, no part is looked at.
        """
        if queue := share.queues[stage]:
            return None if stage == RUNNING and self._waits_for_writes(share, queue[0]) else queue.popleft()
        able = [part for part in share.parts.values() if part.waiting[stage] and self._is_able(part, depth, stage)]
        if len(able) > 1:
            able.sort(key=lambda part: (part.turns[stage], part.seconds[stage]))
        for part in able:
            if (claim := self._next(part, depth + 1, stage)) is not None:
                return claim
        return None

    @staticmethod
    def _waits_for_writes(session: Share, first: Claim) -> bool:
        return first.writes and session.writing + first.weight > _WRITES

    def _hold(self, claim: Claim, kind: int, count: int) -> bool:
        """Count so much more of a kind for *claim*, if there is room for it."""
        root, *parts = claim.shares
        if root.held[kind] + count > self._most[kind]:
            return False
        left = self._room(kind)
        for share, part in zip(parts, self._parts, strict=False):
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
        share = parent.parts[key] = Share(parent, key)
        others = [other.seconds for other in parent.parts.values() if other is not share]
        if others:
            share.seconds = [min(each) for each in zip(*others, strict=True)]
        return share

    @staticmethod
    def _forget_idle(shares: Sequence[Share]) -> None:
        for share in reversed(shares):
            if share.parent is not None and not share.parts and not any(share.held):
                del share.parent.parts[share.key]
