"""Whose message is received next.

gRPC keeps what has arrived of a message that is being received, up to its limit of 1 MiB. Of one that is not received
yet, flow control lets 64 KiB arrive. So each caller has a fixed number of messages received at
once. The time limit for a message begins with its turn.

Four levels of one agent have fewer turns than their tenant, so what a session sends at one of them delays no other.
Twenty agents of a tenant can delay one another, for 3 seconds at most: then the server counts as nearly full.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from muniment_server.transport.cutoff import Cutoff
from muniment_server.transport.incoming import Incoming, nothing

_Keys: TypeAlias = Sequence[Hashable]
"""Whose a message is: all callers', a tenant's, an agent's at one level, a session's; or a connection's."""
_OF_AGENT = 2
"""Where in the keys the agent at one level is, or the host key."""
_MOST_WAITING = 200
"""Calls of one session that wait for their turn: more than are let in."""


class Receiving:
    """The turns in which messages are received."""

    def __init__(self, *most: int) -> None:
        """*most*: how many messages are received at once for each of the keys."""
        self._most = most
        self._counts: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[tuple[_Keys, Callable[[], None]]]] = OrderedDict()
        """By the last key. Of those with as many messages being received, the first is next."""
        self._is_starting = False
        self._lock = threading.Lock()
        self.was_nearly_full = False
        """Whether callers have waited for those of another agent. Whoever reads this sets it back."""

    def begin(self, keys: _Keys, start: Callable[[], None]) -> bool:
        """Call *start*, which must not block, when it is the turn of *keys*. False: too many wait already."""
        with self._lock:
            if may_begin := not self._waiting and self._may_begin(keys):
                self._counts.update(keys)
            else:
                queue = self._waiting.setdefault(keys[-1], deque())
                if len(queue) >= _MOST_WAITING:
                    return False
                queue.append((keys, start))
        if may_begin:
            start()
        else:
            self._start()
        return True

    def end(self, keys: _Keys) -> None:
        """A message has been received, or its call has ended: its turn is over."""
        with self._lock:
            for key in keys:
                self._counts[key] -= 1
                if not self._counts[key]:
                    del self._counts[key]
            if not self._waiting:
                return
        self._start()

    def _start(self) -> None:
        """Start all whose turn it is. Does not nest, although a call that has ended meanwhile ends its turn at once."""
        while start := self._next():
            try:
                start()
            finally:
                self._is_starting = False

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._is_starting:
                return None
            able = [keys for queue in self._waiting.values() if self._may_begin(keys := queue[0][0])]
            if not able:
                return None
            keys = min(able, key=lambda keys: [self._counts[key] for key in keys])
            self._counts.update(keys)
            queue = self._waiting[keys[-1]]
            _, start = queue.popleft()
            if queue:
                self._waiting.move_to_end(keys[-1])
            else:
                del self._waiting[keys[-1]]
            self._is_starting = True
            return start

    def _may_begin(self, keys: _Keys) -> bool:
        for place, (key, most) in enumerate(zip(keys, self._most, strict=False)):
            if self._counts[key] >= most:
                self.was_nearly_full = self.was_nearly_full or place < _OF_AGENT < len(keys)
                return False
        return True


def receive(
    turns: Receiving,
    cutoff: Cutoff,
    call: Incoming,
    keys: _Keys,
    *,
    received: Callable[[bytes | None], None],
    too_late: Callable[[], None] = nothing,
) -> bool:
    """Have the message of *call* received when it is its turn, within the time limit. False: too many wait already.

    *received* is called with the message, or *too_late* if the call has been refused meanwhile.
    """

    def start() -> None:
        cutoff.expect_message(call)
        call.receive(arrived)

    def arrived(message: bytes | None) -> None:
        is_in_time = cutoff.clear(call)
        turns.end(keys)
        if is_in_time:
            received(message)
        else:
            too_late()

    return turns.begin(keys, start)
