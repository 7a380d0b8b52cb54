"""How many calls a second the sessions of an agent may make, at this worker.

Two token buckets refuse a call: that of its session, and that of its agent at its level. Each holds what may be called
in ten seconds.

What this worker remembers of a session may be outdated: its taint may have been raised. If such a call were counted at
the level that is remembered, what is above would slow down what is below. So a call counts for its session when it
arrives, and for its agent and level when it has ended and a statement has confirmed the level. An import counts for its
session only: when it ends, its session may be at another level than when it stored.

Calls that run at the same moment may exceed the limit of the agent, by as many as may be under way. Whatever the
excess, the agent is refused for at most ten seconds.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from google.protobuf.message import Message

from muniment_server.domain.errors import Refusal, Unauthenticated
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor.call import Call, Proceed

_BURST_SECONDS = 10.0
_MOST_BUCKETS = 100_000
REMEMBERED_SECONDS = 60.0
"""How long the level and the limits of a session are remembered with its credential."""


class Buckets:
    """Token buckets by key. One that is full is forgotten."""

    def __init__(self, clock: Callable[[], float], burst: float = _BURST_SECONDS) -> None:
        """A full bucket holds what fills it in *burst* seconds."""
        self._clock = clock
        self._burst = burst
        self._empty_until: OrderedDict[Hashable, float] = OrderedDict()
        """When each bucket was empty last, if it has been filled at its rate since. The one used last is the last."""

    def has_room(self, key: Hashable, rate: float) -> bool:
        """Whether the bucket, which is filled at *rate* tokens a second, holds a token."""
        now = self._clock()
        return self._since(key, now) + 1 / rate <= now

    def take(self, key: Hashable, rate: float) -> None:
        """Take a token. A bucket may be in debt, by what a full one holds at most."""
        now = self._clock()
        self._empty_until[key] = min(self._since(key, now) + 1 / rate, now + self._burst)
        self._empty_until.move_to_end(key)
        while len(self._empty_until) > _MOST_BUCKETS or next(iter(self._empty_until.values())) <= now - self._burst:
            self._empty_until.popitem(last=False)

    def refill(self, key: Hashable) -> None:
        """Fill the bucket."""
        self._empty_until.pop(key, None)

    def _since(self, key: Hashable, now: float) -> float:
        return max(self._empty_until.get(key, -math.inf), now - self._burst)


class Rates:
    """The buckets of one worker, and the sessions whose level a statement has yet to confirm."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._of_sessions = Buckets(clock)
        self._of_agents = Buckets(clock)
        self._unconfirmed = Buckets(clock, REMEMBERED_SECONDS)
        """One token for each session, which comes back after a minute, or once a statement has confirmed the level."""
        self._lock = threading.Lock()

    def admit_unconfirmed(self, caller: HostIdentity | SessionIdentity) -> bool:
        """Whether a call of *caller* may count at the level that is remembered. A host's always may.

        Of a session, one call a minute may until a statement has confirmed the level. Otherwise, a session that was
        raised could fill the room of its agent at its old level, by calls that end before they run.
        """
        if isinstance(caller, HostIdentity):
            return True
        with self._lock:
            if may_count := self._unconfirmed.has_room(caller.session_id, 1 / REMEMBERED_SECONDS):
                self._unconfirmed.take(caller.session_id, 1 / REMEMBERED_SECONDS)
            return may_count

    def admit(self, caller: HostIdentity | SessionIdentity) -> bool:
        """Whether *caller* may make a call now. If so, it is counted for its session. A host always may."""
        if isinstance(caller, HostIdentity):
            return True
        rate = caller.calls_per_second
        of_session = (caller.session_id, rate)
        with self._lock:
            has_room = self._of_sessions.has_room(of_session, rate)
            has_room = has_room and self._of_agents.has_room(_at_level(caller), rate)
            if has_room:
                self._of_sessions.take(of_session, rate)
            return has_room

    def count_ended(self, caller: HostIdentity | SessionIdentity) -> None:
        """Count a call for its agent, at the level that has been confirmed."""
        if isinstance(caller, SessionIdentity):
            with self._lock:
                self._of_agents.take(_at_level(caller), caller.calls_per_second)
                self._unconfirmed.refill(caller.session_id)


class CountCalls:
    """The interceptor that counts calls once they have ended, but for imports and those of which no level is known."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    def __call__(self, call: Call, proceed: Proceed) -> Message:
        if call.method.takes_stream:
            return proceed(call)
        try:
            response = proceed(call)
        except Unauthenticated:
            raise
        except Refusal:
            self._count(call)
            raise
        self._count(call)
        return response

    def _count(self, call: Call) -> None:
        assert call.principal is not None
        self._rates.count_ended(call.principal)


def _at_level(session: SessionIdentity) -> Hashable:
    """The bucket of an agent at a level: another one once its limit has changed."""
    return session.tenant, session.agent, session.taint, session.calls_per_second
