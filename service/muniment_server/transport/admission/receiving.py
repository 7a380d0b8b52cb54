"""Whose message is received next.

gRPC keeps what has arrived of a message that is being received, up to its limit of 1 MiB. Of one that is not received
yet, flow control lets 64 KiB arrive. So each caller has a fixed number of messages received at once, and whoever has
fewest is next: tenants are compared first, then agents, then sessions. The time limit for a message begins when its
call arrives. When it ends, so does the turn, whatever gRPC still does with the call.

Four levels of one agent have fewer turns than their tenant, so what a session sends at one of them delays no other.
Twenty agents of a tenant can delay one another: then the server counts as nearly full.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from muniment_server.transport.admission.cutoff import Cutoff
from muniment_server.transport.incoming import Incoming, nothing


@dataclass(slots=True, eq=False)
class Turn:
    """One message: whose it is, and how to begin to receive it."""

    keys: Sequence[Hashable]
    """Its tenant, its agent at one level, its session; or its tenant and its host key."""
    start: Callable[[], None]
    """Must not block."""
    is_waiting: bool = False
    has_ended: bool = False


@dataclass(slots=True, eq=False)
class _Queue:
    """The turns that wait: of one session or host key; or of all callers, a tenant or an agent, by its parts."""

    parts: dict[Hashable, _Queue] = field(default_factory=dict)
    """Of those with as many messages being received, the first is next."""
    turns: deque[Turn] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.parts or self.turns)


class Receiving:
    """The turns in which messages are received."""

    def __init__(self, turns: int, *most: int) -> None:
        """So many *turns* at once; *most*: how many of one tenant, of one agent or host key, and of one session."""
        self._free = turns
        self._most = most
        self._counts: Counter[Hashable] = Counter()
        self._waiting = _Queue()
        self._is_starting = False
        self._lock = threading.Lock()
        self.was_nearly_full = False
        """Whether callers have waited for those of another agent. Whoever reads this sets it back."""

    def begin(self, turn: Turn) -> None:
        """Start *turn*, at once if there is one for its caller."""
        with self._lock:
            begins = not self._waiting and self._free > 0 and all(map(self._has_room, turn.keys, self._most))
            if begins:
                self._take(turn)
            else:
                turn.is_waiting = True
                self._path(turn)[-1].turns.append(turn)
        if begins:
            turn.start()
        else:
            self._start()

    def end(self, turn: Turn) -> bool:
        """End *turn*, unless that has been done. Returns whether it was still waiting."""
        with self._lock:
            was_waiting, turn.is_waiting = turn.is_waiting, False
            if was_waiting:
                self._remove(turn)
            elif not turn.has_ended:
                self._free += 1
                self._counts.subtract(turn.keys)
                for key in turn.keys:
                    if not self._counts[key]:
                        del self._counts[key]
            turn.has_ended = True
            waits = bool(self._waiting)
        if waits:
            self._start()
        return was_waiting

    def _start(self) -> None:
        """Start all for whom there is a turn. Does not nest, although a call that is gone ends its turn at once."""
        while turn := self._next():
            try:
                turn.start()
            finally:
                self._is_starting = False

    def _next(self) -> Turn | None:
        with self._lock:
            if self._is_starting:
                return None
            if not self._free:
                self.was_nearly_full = self.was_nearly_full or bool(self._waiting)
                return None
            turn = self._first(self._waiting, 0)
            if turn is not None:
                self._is_starting, turn.is_waiting = True, False
                self._remove(turn)
                self._take(turn)
            return turn

    def _first(self, queue: _Queue, depth: int) -> Turn | None:
        """The next turn that waits in *queue*. Of an agent that has no more turns, no session is looked at."""
        if queue.turns:
            return queue.turns[0]
        for key in sorted(queue.parts, key=self._counts.__getitem__):
            if not self._has_room(key, self._most[depth]):
                self.was_nearly_full = self.was_nearly_full or depth == 0
            elif turn := self._first(queue.parts[key], depth + 1):
                return turn
        return None

    def _has_room(self, key: Hashable, most: int) -> bool:
        return self._counts[key] < most

    def _take(self, turn: Turn) -> None:
        self._free -= 1
        self._counts.update(turn.keys)

    def _path(self, turn: Turn) -> list[_Queue]:
        """The queues that *turn* waits in, from that of all callers down."""
        path = [self._waiting]
        for key in turn.keys:
            path.append(path[-1].parts.setdefault(key, _Queue()))
        return path

    def _remove(self, turn: Turn) -> None:
        """Take *turn* out of its queues. Those that others still wait in are the last of their kind then."""
        path = self._path(turn)
        path[-1].turns.remove(turn)
        for key, parent in zip(reversed(turn.keys), reversed(path[:-1]), strict=True):
            if left := parent.parts.pop(key):
                parent.parts[key] = left


def receive(
    turns: Receiving,
    cutoff: Cutoff,
    call: Incoming,
    keys: Sequence[Hashable],
    *,
    received: Callable[[bytes | None], None],
    too_late: Callable[[], None],
) -> None:
    """Have the message of *call* received when it is its turn, within the time limit.

    *received* is called with the message, or *too_late* once the call has been refused and gRPC is done with it.
    """

    def arrived(message: bytes | None) -> None:
        is_in_time = cutoff.clear(call)
        turns.end(turn)
        turn.start = nothing  # a cycle of references would keep the message until the collector runs
        if is_in_time:
            received(message)
        else:
            too_late()

    def refused() -> None:
        if turns.end(turn):
            turn.start = nothing
            too_late()

    turn = Turn(keys, lambda: call.receive(arrived))
    cutoff.expect_message(call, refused)
    turns.begin(turn)
