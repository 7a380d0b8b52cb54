"""The lane of callers that this worker has not seen in the last minute: one thread looks their tokens up together.

Whoever guesses tokens fills this lane and no other, and costs the database one query for each tenant that the guesses
name, at most every few milliseconds. A caller with a valid token passes it once a minute.

Within the lane, tokens that were valid before go first: no one can guess those. Then each tenant that has callers here
gets a turn, by what the tokens say, and so do the tokens of all other tenants together. So guesses delay new callers of
the tenant that they name, and of no other.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from muniment_server.domain.errors import (
    HostKeyExpired,
    MunimentError,
    Overloaded,
    SessionExpired,
    Unauthenticated,
    Unavailable,
)
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.monitor.authentication import Credentials
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.driver_errors import location_of
from muniment_server.postgres.placement import Databases
from muniment_server.transport.admission.shares import room
from muniment_server.transport.incoming import Incoming, Rejection

_LOG = logging.getLogger("muniment.calls")
_Admit: TypeAlias = Callable[[Incoming, HostIdentity | SessionIdentity], None]
_Waiting: TypeAlias = tuple[Incoming, _Admit]
_MAX_TOGETHER = 500
_MAX_STRANGERS = 50
"""Of those without a turn of their own. They may name as many tenants, each of which takes a query."""
_MAX_WAITING = 10_000
_MAX_TENANTS = 1_000
"""Those whose tokens were valid last have turns of their own."""
_PAUSE = 0.002
"""Seconds between two queries."""
_QUERY_SECONDS = 5.0


class Lane:
    """The calls that wait. Not safe for threads."""

    def __init__(self) -> None:
        self._first: deque[_Waiting] = deque()
        self._queues: OrderedDict[TenantNumber | None, deque[_Waiting]] = OrderedDict()
        """By tenant; None for all that have no turn of their own. Whose turn is next is the first."""
        self._tenants: OrderedDict[TenantNumber, None] = OrderedDict()
        """Those with valid tokens. Whose token was valid last is the last."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def has_callers(self, tenant: TenantNumber) -> None:
        """Give *tenant* turns of its own from now on: a token of it is valid."""
        self._tenants[tenant] = None
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > _MAX_TENANTS:
            self._tenants.popitem(last=False)

    def put(self, waiting: _Waiting, tenant: TenantNumber, *, first: bool) -> bool:
        """Queue a call. False: the lane is nearly full, and as many wait already in its queue as may still come."""
        key = tenant if tenant in self._tenants else None
        queue = self._first if first else self._queues.get(key, deque())
        if len(queue) >= room(_MAX_WAITING, self._count):
            return False
        queue.append(waiting)
        if not first:
            self._queues[key] = queue
        self._count += 1
        return True

    def take(self) -> list[_Waiting]:
        """Take those whose turn it is, to be looked up together."""
        taken: list[_Waiting] = []
        strangers = 0
        while self._count and len(taken) < _MAX_TOGETHER and strangers < _MAX_STRANGERS:
            self._count -= 1
            if self._first:
                taken.append(self._first.popleft())
                continue
            key, queue = self._queues.popitem(last=False)
            taken.append(queue.popleft())
            strangers += key is None
            if queue:
                self._queues[key] = queue
        return taken


class Verification:
    """Finds out whether the tokens of calls to tenants of one server are valid, and lets those calls in."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._lane = Lane()
        self._wake = threading.Condition()
        self._stopped = False

    @property
    def waiting(self) -> int:
        """How many calls wait here."""
        return len(self._lane)

    def verify(self, call: Incoming, token: Token, admit: _Admit) -> None:
        """Call *admit* with *call* and its principal, later and on another thread; or refuse the call."""
        was_valid = self._credentials.remembered(token, seconds=math.inf) is not None
        with self._wake:
            if has_room := self._lane.put((call, admit), token.tenant, first=was_valid):
                self._wake.notify()
        if not has_room:
            call.refuse(_OVERLOADED)

    def start(self) -> None:
        """Start to look tokens up."""
        threading.Thread(target=self._work, name="verification", daemon=True).start()

    def stop(self) -> None:
        """Stop. Calls that wait are left to the server, which ends them."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: len(self._lane) or self._stopped)
                if self._stopped:
                    return
                together = self._lane.take()
            self._look_up(together)
            time.sleep(_PAUSE)

    def _look_up(self, together: Sequence[_Waiting]) -> None:
        tokens = {call.token for call, _ in together if call.token is not None}
        try:
            holders = self._credentials.look_up(tokens, Deadline(_QUERY_SECONDS))
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread must go on
            if not isinstance(error, MunimentError):
                _LOG.error("tokens could not be looked up: %s\n%s", type(error).__name__, location_of(error))
            rejection = Rejection(error)
            for call, _ in together:
                call.guarded(partial(call.refuse, rejection))
            return
        with self._wake:
            for token, holder in holders.items():
                if not isinstance(holder, Unauthenticated):
                    self._lane.has_callers(token.tenant)
        for call, admit in together:
            assert call.token is not None
            holder = holders[call.token]
            if isinstance(holder, Unauthenticated):
                call.guarded(partial(call.refuse, _REFUSALS[type(holder)]))
            else:
                call.guarded(partial(admit, call, holder))


class Verifications:
    """The same for the tenants of all servers: each server has its own, so that no caller waits for another server."""

    def __init__(self, credentials: Credentials, databases: Databases) -> None:
        self._databases = databases
        self._by_server = {name: Verification(credentials) for name in databases.names}

    @property
    def waiting(self) -> int:
        """How many calls wait here."""
        return sum(verification.waiting for verification in self._by_server.values())

    def of(self, tenant: TenantNumber) -> Verification:
        """The verification of callers of *tenant*."""
        return self._by_server[self._databases.server_of(tenant)]

    def verify(self, call: Incoming, token: Token, admit: _Admit) -> None:
        """Call *admit* with *call* and its principal, later and on another thread; or refuse the call."""
        if self._databases.refuses(token.tenant):
            call.refuse(_UNAVAILABLE)
        else:
            self.of(token.tenant).verify(call, token, admit)

    def refuse(self, call: Incoming) -> None:
        """Refuse a call without a well-formed credential."""
        call.refuse(_REFUSALS[Unauthenticated])

    def start(self) -> None:
        """Start to look tokens up."""
        for verification in self._by_server.values():
            verification.start()

    def stop(self) -> None:
        """Stop. Calls that wait are left to the server, which ends them."""
        for verification in self._by_server.values():
            verification.stop()


_OVERLOADED = Rejection(Overloaded())
_REFUSALS = {kind: Rejection(kind()) for kind in (Unauthenticated, SessionExpired, HostKeyExpired)}
_UNAVAILABLE = Rejection(Unavailable())
