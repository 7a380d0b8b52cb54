"""Whose message is received next.

gRPC keeps what has arrived of a message that is being received, up to its limit of 1 MiB. Of one that nobody receives
yet, it takes no more than the window of its stream, 64 KiB. So each caller has a fixed number of messages received at
once. The time limit for a message begins with its turn.

Four levels of one agent have fewer turns than their tenant, so what a session sends at one of them delays no other.
Twenty agents of a tenant can delay one another, for 3 seconds at most: then the server counts as nearly full.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import TypeAlias

from muniment_server.transport.cutoff import Cutoff
from muniment_server.transport.incoming import Incoming, nothing

_Keys: TypeAlias = tuple[Hashable, ...]
_OF_AGENT = 2
"""How many keys an agent at one level has, or a host key: its tenant, and itself."""
_MOST_WAITING = 200
"""Calls with the same keys that wait for their turn: more than are let in of one session."""


class Receiving:
    """The turns in which messages are received."""

    def __init__(self, *most: int) -> None:
        """*most*: how many messages are received at once: of all callers, of a tenant, of an agent and so on."""
        self._most = most
        self._counts: Counter[_Keys] = Counter()
        self._waiting: OrderedDict[_Keys, deque[Callable[[], None]]] = OrderedDict()
        """By keys. Of those with as many messages being received, the first is next."""
        self._is_starting = False
        self._lock = threading.Lock()
        self.was_nearly_full = False
        """Whether callers have waited for those of another agent. Whoever reads this sets it back."""

    def begin(self, keys: _Keys, start: Callable[[], None]) -> bool:
        """Call *start*, which must not block, when it is the turn of *keys*. False: too many wait already."""
        with self._lock:
            queue = self._waiting.setdefault(keys, deque())
            if len(queue) >= _MOST_WAITING:
                return False
            queue.append(start)
        self._start()
        return True

    def end(self, keys: _Keys) -> None:
        """A message has been received, or its call has ended: its turn is over."""
        with self._lock:
            for part in _parts(keys):
                self._counts[part] -= 1
                if not self._counts[part]:
                    del self._counts[part]
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
            able = [keys for keys in self._waiting if self._may_begin(keys)]
            if not able:
                return None
            keys = min(able, key=lambda keys: [self._counts[part] for part in _parts(keys)])
            for part in _parts(keys):
                self._counts[part] += 1
            queue = self._waiting[keys]
            start = queue.popleft()
            if queue:
                self._waiting.move_to_end(keys)
            else:
                del self._waiting[keys]
            self._is_starting = True
            return start

    def _may_begin(self, keys: _Keys) -> bool:
        for part, most in zip(_parts(keys), self._most, strict=False):
            if self._counts[part] >= most:
                self.was_nearly_full = self.was_nearly_full or len(part) < _OF_AGENT
                return False
        return True

    def holders(self) -> list[str]:
        """The three agents at one level, or keys, of which most messages are being received, and how many."""
        with self._lock:
            counts = Counter({part: count for part, count in self._counts.items() if len(part) == _OF_AGENT})
        return [f"tenant {tenant}, {of}: {count} messages" for (tenant, of), count in counts.most_common(3)]


class Reception:
    """Receives messages in turns, each within a time limit."""

    def __init__(self, turns: Receiving, cutoff: Cutoff) -> None:
        self._turns = turns
        self._cutoff = cutoff

    def receive(
        self,
        call: Incoming,
        keys: _Keys,
        received: Callable[[bytes | None], None],
        too_late: Callable[[], None] = nothing,
    ) -> bool:
        """Have the message of *call* received when it is its turn. False: too many calls of its caller wait already.

        *received* is called with the message, or *too_late* if the call has been refused meanwhile.
        """

        def start() -> None:
            self._cutoff.expect_message(call)
            call.receive(arrived)

        def arrived(message: bytes | None) -> None:
            is_in_time = self._cutoff.clear(call)
            self._turns.end(keys)
            if is_in_time:
                received(message)
            else:
                too_late()

        return self._turns.begin(keys, start)


def _parts(keys: _Keys) -> Iterator[_Keys]:
    return (keys[:depth] for depth in range(len(keys) + 1))
