"""Reflection: describes the contract to hosts, so that grpcurl finds its methods.

grpc keeps a thread for each reflection until its caller ends it, so only so many run at once. Without a credential
there is none: whether a thread is free would tell one caller what another does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import grpc
from grpc_reflection.v1alpha import reflection_pb2

from muniment_server.domain.errors import Overloaded
from muniment_server.monitor.authentication import bearer_token
from muniment_server.monitor.policy import Method
from muniment_server.transport.admission.verification import Verifications
from muniment_server.transport.call_log import CallLog
from muniment_server.transport.incoming import Incoming, Rejection
from muniment_server.transport.parsing import parsed

_Behavior: TypeAlias = Callable[[Iterator[Any], grpc.ServicerContext], Iterator[Any]]
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
        self._lane = _Lane("reflection", threads=4, seconds=60.0)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Take over a call. Returns None, by which grpc knows that it need not count it."""
        respond, event, state, behavior, *rest = args
        call = Incoming(respond, event, state, None)
        call.record = self._calls.begin(REFLECT, call.peer)
        call.on_end(call.record_end)

        def run() -> None:
            self._lane.run(call, lambda limited: fn(respond, event, state, limited, *rest), behavior)

        if self._open_to_all:
            run()
        elif (token := bearer_token(call.metadata)) is None:
            self._verification.refuse(call)
        else:
            call.token = token
            self._verification.verify(call, token, lambda _, __: run())


class _Lane:
    """Threads for as many calls as may run at once. One more is refused."""

    def __init__(self, name: str, *, threads: int, seconds: float) -> None:
        self._places = threading.Semaphore(threads)
        self._threads = ThreadPoolExecutor(threads, name)
        self._seconds = seconds

    def run(self, call: Incoming, work: Callable[[_Behavior], None], behavior: _Behavior) -> None:
        """Do *work* with *behavior*, limited in time."""
        if self._places.acquire(blocking=False):
            running = self._threads.submit(work, self._limited(behavior))
            running.add_done_callback(lambda _: self._places.release())
        else:
            call.refuse(_OVERLOADED)

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
