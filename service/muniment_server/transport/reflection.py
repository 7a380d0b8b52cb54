"""Reflection: describes the contract to hosts, and to everybody the health service, so that grpcurl reaches it.

grpc keeps a thread for each reflection until its caller ends it, so only so many run at once. Those without a
credential have threads of their own and little time. As in `shares`, what one connection gets tells nothing of others.
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
from muniment_server.monitor.authentication import bearer_token
from muniment_server.monitor.policy import Method
from muniment_server.transport import descriptions
from muniment_server.transport.call_log import CallLog
from muniment_server.transport.incoming import Incoming, Rejection
from muniment_server.transport.parsing import parsed
from muniment_server.transport.shares import room
from muniment_server.transport.verification import Verifications

_Behavior: TypeAlias = Callable[[Iterator[Any], grpc.ServicerContext], Iterator[Any]]
_PLACES = 32
_OVERLOADED = Rejection(Overloaded())
_REQUEST = reflection_pb2.ServerReflectionRequest
REFLECT = Method.outside_the_contract("Reflection", for_sessions=False)


class Reflection(ThreadPoolExecutor):
    """What grpc takes for the thread pool of reflection: it submits each call here, on its serving thread."""

    def __init__(self, verification: Verifications, calls: CallLog, *, open_to_all: bool) -> None:
        super().__init__(1)
        self._calls = calls
        self._verification = verification
        self._open_to_all = open_to_all
        self._of_hosts = _Lane("reflection", seconds=60.0)
        self._of_all = _Lane("health reflection", seconds=5.0)
        self._health = descriptions.of_health().answers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Take over a call. Returns None, by which grpc knows that it need not count it."""
        respond, event, state, behavior, *rest = args
        call = Incoming(respond, event, state, None)
        call.record = self._calls.begin(REFLECT, call.peer)
        call.on_end(call.record_end)

        def run(lane: _Lane, chosen: _Behavior) -> None:
            lane.run(call, lambda limited: fn(respond, event, state, limited, *rest), chosen)

        if self._open_to_all:
            run(self._of_hosts, behavior)
        elif not any(name == "authorization" for name, _ in call.metadata):
            run(self._of_all, self._health)
        elif (token := bearer_token(call.metadata)) is None:
            self._verification.refuse(call)
        else:
            call.token = token
            self._verification.verify(call, token, lambda _, __: run(self._of_hosts, behavior))


class _Lane:
    """Threads for as many calls as may run at once: two of one connection, until the lane is nearly full."""

    def __init__(self, name: str, *, seconds: float) -> None:
        self._running: Counter[str] = Counter()
        """By connection."""
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_PLACES, name)
        self._seconds = seconds

    def run(self, call: Incoming, work: Callable[[_Behavior], None], behavior: _Behavior) -> None:
        """Do *work* with *behavior*, limited in time."""
        connection = call.peer()
        if self._enters(connection):
            running = self._threads.submit(work, self._limited(behavior))
            running.add_done_callback(lambda _: self._leaves(connection))
        else:
            call.refuse(_OVERLOADED)

    def _enters(self, connection: str) -> bool:
        with self._lock:
            left = room(_PLACES, self._running.total())
            if has_place := self._running[connection] < min(left, max(1, left // 16)):
                self._running[connection] += 1
            return has_place

    def _leaves(self, connection: str) -> None:
        with self._lock:
            self._running -= Counter([connection])

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
