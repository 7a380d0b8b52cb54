"""Which handler and which threads serve a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, cast

import grpc
from google.protobuf.message import Message

from muniment_server.domain.errors import DeadlineExceeded, MethodUnknown, Overloaded
from muniment_server.monitor import status
from muniment_server.monitor.call import Call, Interceptor, Proceed, seconds_left
from muniment_server.monitor.interceptors import Authorize
from muniment_server.monitor.policy import Method
from muniment_server.monitor.scopes import Scopes
from muniment_server.postgres.deadline import Deadline
from muniment_server.transport.pools import CallPool, Limits
from muniment_server.transport.receive_timeout import ReceiveTimeout

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
"""Passed through unchanged: behind interceptors it would hold a thread for as long as it lives."""
_REFLECTION = "/grpc.reflection."
_LONG = frozenset(
    {
        "/muniment.v1.MemoryService/SearchMemories",
        "/muniment.v1.NoteService/SearchNotes",
        "/muniment.v1.PassageService/SearchPassages",
        "/muniment.v1.PromptService/RenderPrompt",
    }
)
"""Calls that may take long. They run on threads of their own, so that they cannot occupy all."""
_UNKNOWN = Method.outside_the_contract("Unknown", for_sessions=True)
_REFLECT = Method.outside_the_contract("Reflection", for_sessions=False)
_MAX_REFLECTION_SECONDS = 60.0
_MAX_STREAM_SECONDS = 600.0
_LONG_CALLS_PER_THREAD = 32
_STREAMS_PER_THREAD = 16


class Dispatcher(grpc.ServerInterceptor):
    """Chooses the handler of each call. A handler is made once for each method, behind all interceptors.

    grpc asks on its one serving thread, so nothing but choosing happens there.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        interceptors: Sequence[Interceptor],
        scopes: Scopes,
        *,
        limits: Limits,
        open_reflection: bool,
        receive_timeout: ReceiveTimeout,
    ) -> None:
        self._methods = methods
        self._interceptors = interceptors
        self._scopes = scopes
        self.pool = CallPool(limits.threads, max_in_flight=limits.max_in_flight)
        self._long_pool = CallPool(limits.long_threads, max_in_flight=_LONG_CALLS_PER_THREAD * limits.long_threads)
        self._stream_pool = CallPool(limits.stream_threads, max_in_flight=_STREAMS_PER_THREAD * limits.stream_threads)
        self._receive_timeout = receive_timeout
        self._handlers: dict[str, Handler] = {}
        until_authorized = interceptors[: 1 + [type(one) for one in interceptors].index(Authorize)]
        self._unknown = _handler(self._behind(until_authorized, _UNKNOWN, _unknown), None)
        self._admit = None if open_reflection else self._behind(until_authorized, _REFLECT, lambda _: Message())
        self._reflection_pool = ThreadPoolExecutor(4, "reflection")
        self._health_pool = ThreadPoolExecutor(2, "health")
        self._overloaded = _overloaded_handler()

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler for one call."""
        path = handler_call_details.method
        if path == _HEALTH_WATCH:
            return continuation(handler_call_details)
        if path != _HEALTH_CHECK and self._pool_of(path).is_full:
            return self._overloaded
        return self._handlers.get(path) or self._make(path, continuation(handler_call_details))

    def _make(self, path: str, handler: Handler | None) -> Handler | None:
        if path.startswith(_REFLECTION):
            # grpc itself refuses a version that this server lacks, so that tools ask for another.
            return self._reflection(handler) if handler is not None else None
        if handler is not None and path == _HEALTH_CHECK:
            self._handlers[path] = self._health_check(handler)
        elif handler is not None and path in self._methods:
            behavior = self._behind(self._interceptors, self._methods[path], _servicer(handler))
            self._handlers[path] = _handler(_on(self._pool_of(path), behavior), handler.response_serializer)
        return self._handlers.get(path, self._unknown)

    def _pool_of(self, path: str) -> CallPool:
        """The threads for a call. A full pool refuses its own calls, not those of the others."""
        if path in _LONG:
            return self._long_pool
        if path in self._methods and self._methods[path].takes_stream:
            return self._stream_pool
        return self.pool

    def _reflection(self, handler: Handler) -> Handler:
        """Serves the contract: to everybody in development, to hosts otherwise, on threads of its own."""
        stream: Any = handler.stream_stream

        def behavior(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            if self._admit is not None:
                self._admit(iter(()), context)
            end = threading.Timer(_MAX_REFLECTION_SECONDS, context.cancel)
            end.daemon = True
            end.start()
            try:
                yield from stream(requests, context)
            finally:
                end.cancel()

        return grpc.stream_stream_rpc_method_handler(
            _on(self._reflection_pool, behavior), handler.request_deserializer, handler.response_serializer
        )

    def _health_check(self, handler: Handler) -> Handler:
        """For everybody, on threads of its own: it must be answered when all others are busy."""
        check: Any = handler.unary_unary
        parse: Any = handler.request_deserializer

        def behavior(requests: Iterator[bytes], context: grpc.ServicerContext) -> Message:
            return cast(Message, check(parse(self._receive_timeout.receive(requests, context) or b""), context))

        return _handler(_on(self._health_pool, behavior), handler.response_serializer)

    def _behind(
        self, interceptors: Sequence[Interceptor], method: Method, innermost: Proceed
    ) -> Callable[..., Message]:
        proceed = innermost
        for interceptor in reversed(interceptors):
            proceed = partial(interceptor, proceed=proceed)
        return partial(self._serve, method, proceed)

    def _serve(
        self, method: Method, proceed: Proceed, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Message:
        """Serve one call: return a response, or abort."""
        left = seconds_left(context)
        if method.takes_stream:
            left = _MAX_STREAM_SECONDS if left is None else min(left, _MAX_STREAM_SECONDS)
        deadline = Deadline(left)
        if not context.add_callback(deadline.expire):
            context.abort_with_status(status.status_of(DeadlineExceeded()))
        receive = partial(self._receive_timeout.receive, requests, context, in_stream=method.takes_stream)
        return proceed(Call(method, context, receive, deadline, self._scopes))


def _servicer(handler: Handler) -> Proceed:
    behavior: Any = handler.unary_unary or handler.stream_unary  # takes a CallContext, not grpc's context

    def serve(call: Call) -> Message:
        context = call.for_servicer()
        try:
            return cast(Message, behavior(call.request, context))
        finally:
            context.end()

    return serve


def _unknown(_: Call) -> Message:
    raise MethodUnknown


def _handler(behavior: Callable[..., Message], serializer: Callable[[Message], bytes] | None) -> Handler:
    """Requests arrive as a stream of bytes, to be received and parsed behind the interceptors. Callers cannot tell."""
    return grpc.stream_unary_rpc_method_handler(behavior, request_deserializer=None, response_serializer=serializer)


def _overloaded_handler() -> Handler:
    """Refuses at once, on a thread of its own: those of the pools are what is missing."""
    overloaded = status.status_of(Overloaded())

    def refuse(_: Iterator[bytes], context: grpc.ServicerContext) -> Message:
        context.abort_with_status(overloaded)
        raise AssertionError("abort_with_status always raises")

    return _handler(_on(ThreadPoolExecutor(1, "refuse"), refuse), None)


def _on(pool: ThreadPoolExecutor, behavior: Callable[..., Any]) -> Callable[..., Any]:
    """*behavior*, to run on *pool*: grpc looks for this attribute."""
    behavior.experimental_thread_pool = pool  # type: ignore[attr-defined]
    return behavior
