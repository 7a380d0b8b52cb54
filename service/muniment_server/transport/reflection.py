"""Reflection: describes the contract to hosts, so that grpcurl finds its methods.

grpc keeps a thread for each reflection until its caller ends it, so only so many run at once. Without a credential
there is none, and for a session neither: whether a thread is free would tell one caller what another does. No tenant
takes them all.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import grpc
from grpc_reflection.v1alpha import reflection_pb2

from muniment_server.domain.errors import Overloaded
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.monitor.policy import Method
from muniment_server.transport.admission.admission import Admission, Route
from muniment_server.transport.incoming import Behavior, Incoming, Rejection
from muniment_server.transport.parsing import parsed

_Behavior: TypeAlias = Callable[[Iterator[Any], grpc.ServicerContext], Iterator[Any]]
_OVERLOADED = Rejection(Overloaded())
_REQUEST = reflection_pb2.ServerReflectionRequest
REFLECT = Method.outside_the_contract("Reflection", for_sessions=False)


class Reflection(ThreadPoolExecutor):
    """What grpc takes for the thread pool of reflection: it submits each call here, on its serving thread."""

    def __init__(self, admission: Admission, authorize: Behavior | None) -> None:
        """*authorize* refuses who is no host. None: it is open to all."""
        super().__init__(1)
        self._admission = admission
        self._authorize = authorize
        self._lane = _Lane("reflection", threads=8, of_tenant=2 if authorize else 8, seconds=60.0)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Take over a call. Returns None, by which grpc knows that it need not count it."""
        respond, event, state, behavior, *rest = args
        call = Incoming(respond, event, state, None)
        call.record = self._admission.calls.begin(REFLECT, call.peer)
        call.on_end(call.record_end)

        def run(tenant: TenantNumber | None) -> None:
            self._lane.run(tenant, call, lambda limited: fn(respond, event, state, limited, *rest), behavior)

        if self._authorize is None:
            return run(None)
        refuse = Route(REFLECT, self._authorize)

        def verified(_: Incoming, principal: HostIdentity | SessionIdentity) -> None:
            if REFLECT.allows(principal):
                run(principal.tenant)
            else:  # in its own turn, like any call
                self._admission.enter_within_rate(call, principal, refuse)

        if (token := self._admission.token_of(call.metadata, call.certificate)) is None:
            self._admission.verification.refuse(call)
        else:
            call.token = token
            self._admission.verification.verify(call, token, verified)


class _Lane:
    """Threads for as many calls as may run at once. One more is refused."""

    def __init__(self, name: str, *, threads: int, of_tenant: int, seconds: float) -> None:
        self._most = threads
        self._most_of_tenant = of_tenant
        self._running: Counter[TenantNumber | None] = Counter()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(threads, name)
        self._seconds = seconds

    def run(
        self, tenant: TenantNumber | None, call: Incoming, work: Callable[[_Behavior], None], behavior: _Behavior
    ) -> None:
        """Do *work* with *behavior*, limited in time."""
        if self._takes_place(tenant):
            running = self._threads.submit(work, self._limited(behavior))
            running.add_done_callback(lambda _: self._leave(tenant))
        else:
            call.refuse(_OVERLOADED)

    def _takes_place(self, tenant: TenantNumber | None) -> bool:
        with self._lock:
            has_place = self._running.total() < self._most and self._running[tenant] < self._most_of_tenant
            self._running[tenant] += has_place
            return has_place

    def _leave(self, tenant: TenantNumber | None) -> None:
        with self._lock:
            self._running[tenant] -= 1
            self._running += Counter()  # forgets who has none

    def _limited(self, behavior: _Behavior) -> _Behavior:
        def limited(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
            end = threading.Timer(self._seconds, context.cancel)
            end.daemon = True
            end.start()
            try:
                yield from behavior((parsed(_REQUEST, each, context) for each in requests), context)
            finally:
                end.cancel()

        return limited
