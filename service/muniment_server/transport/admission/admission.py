"""Whether a call is let in.

1. A call without a well-formed credential is refused. One that this worker has not seen in the last minute is looked up
   first, together with others (`verification`).
2. The call of a session that makes too many a second is refused (`rates`), and that of a caller who has many calls
   under way already whose message has not arrived (`shares`).
3. What is let in is received, waits and runs (`calls`), behind the interceptors of the monitor, which check its caller
   again.

What is known of callers here chooses queues and threads. It allows nothing.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import RateLimited, Unavailable
from muniment_server.domain.ids import AgentNumber
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.monitor.authentication import Credentials, bearer_token
from muniment_server.monitor.gate import Gate
from muniment_server.monitor.policy import Flow, Method
from muniment_server.postgres.placement import Databases
from muniment_server.telemetry import worker_metrics as metrics
from muniment_server.telemetry.logs import fields
from muniment_server.transport.admission.calls import AdmittedCall, AdmittedStream
from muniment_server.transport.admission.cutoff import Cutoff
from muniment_server.transport.admission.pools import Limits, Pools
from muniment_server.transport.admission.rates import REMEMBERED_SECONDS, Rates
from muniment_server.transport.admission.shares import Shares
from muniment_server.transport.admission.verification import Verifications
from muniment_server.transport.call_log import CallLog
from muniment_server.transport.incoming import Behavior, Incoming, Rejection

_LOG = logging.getLogger("muniment.server")
_STUCK_SECONDS = 10.0
_CONFIRMED_SECONDS = 1.0
"""How recently a session must have been looked up for its limit to refuse a call, or for several of its calls to count
at its level."""
_RATE_LIMITED = Rejection(RateLimited())
_UNAVAILABLE = Rejection(Unavailable())


@dataclass
class Route:
    """How the calls of one method are served. To grpc, it is the behavior of the method's handler."""

    method: Method | None
    """None: a check of the health, which needs no credential."""
    behavior: Behavior
    refusal: Rejection | None = None
    """How every call of the method is refused."""


class Admission:
    """Lets calls in, and has them run when it is their turn."""

    def __init__(
        self,
        credentials: Credentials,
        gate: Gate,
        limits: Limits,
        rates: Rates,
        calls: CallLog,
        databases: Databases,
    ) -> None:
        self.calls = calls
        """What is kept of each call."""
        self._credentials = credentials
        self._gate = gate
        self._rates = rates
        self._cutoff = Cutoff()
        self.verification = Verifications(credentials, databases)
        """For callers that are not remembered."""
        self._pools = Pools.of(limits)
        self._was_nearly_full: defaultdict[str, bool] = defaultdict(bool)
        """Whether a pool was found nearly full in the second before."""

    def start(self) -> None:
        """Start to let calls in."""
        self._cutoff.start()
        self.verification.start()

    def stop(self) -> None:
        """End the threads."""
        self.verification.stop()
        self._cutoff.stop()
        self._pools.stop()

    @property
    def is_stuck(self) -> bool:
        """Whether calls of sessions or hosts wait for a turn, and no turn has ended for a while."""
        pools = (self._pools.calls, self._pools.hosts)
        return any(pool.shares.seconds_without_progress > _STUCK_SECONDS for pool in pools)

    def measure(self) -> None:
        """Show in the metrics how much is under way, and log what was repeated. To be called every second."""
        for name, shares in self._pools.by_name():
            load = shares.load
            metrics.IN_FLIGHT.labels(name).set(load.in_flight)
            metrics.QUEUED.labels(name).set(load.queued)
            metrics.RUNNING.labels(name).set(load.running)
            metrics.CALL_BYTES.labels(name).set(load.byte_count)
            self._report_nearly_full(name, shares)
        metrics.UNVERIFIED.set(self.verification.waiting)
        self.calls.report_repeats()

    def _report_nearly_full(self, name: str, shares: Shares) -> None:
        """Count that a pool was found nearly full since the last call; when that begins, log who holds most of it."""
        is_nearly_full, shares.was_nearly_full = shares.was_nearly_full, False
        metrics.NEARLY_FULL.labels(name).inc(is_nearly_full)
        if is_nearly_full and not self._was_nearly_full[name]:
            _LOG.warning("nearly full", extra=fields(pool=name, holders=shares.holders()))
        self._was_nearly_full[name] = is_nearly_full

    def arrived(self, call: Incoming, route: Route) -> None:
        """Take over a call whose headers have arrived. Called on grpc's serving thread; does not block."""
        if route.method is not None:
            call.record = self.calls.begin(route.method, call.peer)
        if route.refusal is not None:
            call.refuse(route.refusal)
        elif route.method is None:
            self._check_health(call, route)
        elif not self._gate.open:
            call.refuse(_UNAVAILABLE)
        elif (token := self.token_of(call.metadata, call.certificate)) is None:
            self.verification.refuse(call)
        else:
            call.token = token
            principal = self._credentials.remembered(token, seconds=REMEMBERED_SECONDS)
            is_confirmed = self._credentials.remembered(token, seconds=_CONFIRMED_SECONDS) is not None
            is_level_known = principal is not None and (is_confirmed or self._rates.admit_unconfirmed(principal))
            if principal is not None and is_level_known and self._rates.admit(principal):
                self._enter(call, principal, route)
            elif principal is not None and is_confirmed:
                self._refuse_for_rate(call, principal)
            else:  # also before a refusal: the limit may have been raised, or the taint
                self.verification.verify(call, token, partial(self.enter_within_rate, route=route))

    def token_of(
        self, metadata: Iterable[tuple[str, str | bytes]], certificate: Callable[[], bytes | None]
    ) -> Token | None:
        """What stands for the credential of a call in the database. None without a well-formed one."""
        return bearer_token(metadata, self._credentials.credential, certificate)

    def _check_health(self, call: Incoming, route: Route) -> None:
        """For everybody. All room is the connection's own: a check tells nothing of those of others."""
        check = AdmittedCall(call, route.behavior, self._pools.health, self._cutoff, writes=False)
        if check.enter((call.peer(),)):
            check.receive()

    def enter_within_rate(self, call: Incoming, principal: HostIdentity | SessionIdentity, route: Route) -> None:
        """Let a call of *principal* in, or refuse it."""
        if self._rates.admit(principal):
            self._enter(call, principal, route)
        else:
            self._refuse_for_rate(call, principal)

    @staticmethod
    def _refuse_for_rate(call: Incoming, principal: HostIdentity | SessionIdentity) -> None:
        assert call.record is not None
        call.record.principal = principal
        call.refuse(_RATE_LIMITED)

    def _enter(self, call: Incoming, principal: HostIdentity | SessionIdentity, route: Route) -> None:
        """Have the call received and run when it is its turn; or refuse it."""
        assert route.method is not None
        assert call.record is not None
        call.record.principal = principal
        keys, writes = _keys(principal), route.method.flow is Flow.WRITE
        may_call = route.method.allows(principal)
        of_threads = self._pools.shares_with_threads(route.method) if may_call else None
        if of_threads is not None:
            stream = AdmittedStream(call, route.behavior, of_threads, self._cutoff, writes=writes)
            if stream.enter(keys):
                stream.begin()
            return
        pool = self._pools.pool_for(principal, route.method)
        admitted = AdmittedCall(call, route.behavior, pool, self._cutoff, writes=writes)
        if not admitted.enter(keys):
            return
        if may_call and route.method.request_type != "":
            admitted.receive()
        else:  # one that will be refused whatever it says is not waited for
            admitted.queue(None)


class AgentAtLevel(NamedTuple):
    """Whose sessions share room."""

    agent: AgentNumber
    label: Label

    def __str__(self) -> str:
        return f"agent {self.agent} at {self.label.name}"


def _keys(principal: HostIdentity | SessionIdentity) -> tuple[Hashable, ...]:
    """Whose a call of *principal* is."""
    if isinstance(principal, SessionIdentity):
        return principal.tenant, AgentAtLevel(principal.agent, principal.taint), principal.session_id
    return principal.tenant, f"key {principal.host_key_id}"
