"""The interceptor that puts every call behind the walls, in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, cast

import grpc
from google.protobuf.message import Message

from muniment_server.domain.errors import DeadlineExceeded, MethodUnknown, Overloaded
from muniment_server.monitor import status
from muniment_server.monitor.call import CallContext, Proceed, Wall, seconds_left
from muniment_server.monitor.interceptors import Authorize
from muniment_server.monitor.policy import Method
from muniment_server.postgres.deadline import Lifetime
from muniment_server.transport.receive_timeout import Patience

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
"""Passed through as it is: wrapped, it would hold a thread for as long as it lives."""
_REFLECTION = "/grpc.reflection."
_LONG = frozenset(
    {
        "/muniment.v1.MemoryService/SearchMemories",
        "/muniment.v1.NoteService/SearchNotes",
        "/muniment.v1.PassageService/SearchPassages",
        "/muniment.v1.PromptService/RenderPrompt",
    }
)
"""Calls that may take long, on threads of their own, so that they do not hold every one."""
_UNKNOWN = Method.beside("Unknown", for_sessions=True)
_REFLECT = Method.beside("Reflection", for_sessions=False)
_LONGEST_REFLECTION = 60.0
"""Seconds that a stream of reflection may hold its thread."""
_LONGEST_STREAM = 600.0
"""Seconds that a stream of requests may hold its thread."""


class CallPool(ThreadPoolExecutor):
    """The threads that run calls of one sort, and how many calls they have, queued ones included."""

    def __init__(self, threads: int, *, most: int) -> None:
        super().__init__(max_workers=threads, thread_name_prefix="call")
        self.in_flight = 0
        self._most = most
        self._count = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run *fn* on a thread. Called by grpc on its one serving thread."""
        with self._count:
            self.in_flight += 1
        try:
            future = super().submit(fn, *args, **kwargs)
        except RuntimeError:  # shut down
            self._done(None)
            raise
        future.add_done_callback(self._done)
        return future

    @property
    def is_full(self) -> bool:
        """Whether one call more is to be refused."""
        return self.in_flight >= self._most

    def _done(self, _: Future[Any] | None) -> None:
        with self._count:
            self.in_flight -= 1


class PutBehindWalls(grpc.ServerInterceptor):
    """Chooses for each call the handler behind the walls, made once for each method.

    grpc asks on its one serving thread, so that nothing but choosing happens there.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        walls: Sequence[Wall],
        *,
        pool: CallPool,
        long_pool: CallPool,
        stream_pool: CallPool,
        open_reflection: bool,
        patience: Patience,
    ) -> None:
        self._methods = methods
        self._walls = walls
        self._pool = pool
        self._long_pool = long_pool
        self._stream_pool = stream_pool
        self._patience = patience
        self._handlers: dict[str, Handler] = {}
        until_allowed = walls[: 1 + next(i for i, wall in enumerate(walls) if isinstance(wall, Authorize))]
        self._unknown = _handler(self._behind(until_allowed, _UNKNOWN, _unknown), None)
        self._admit = None if open_reflection else self._behind(until_allowed, _REFLECT, lambda _: Message())
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
            # A version that we do not have is for grpc to refuse, so that tools ask for another.
            return self._reflection(handler) if handler is not None else None
        if handler is not None and path == _HEALTH_CHECK:
            self._handlers[path] = self._health_check(handler)
        elif handler is not None and path in self._methods:
            behaviour = self._behind(self._walls, self._methods[path], _servicer(handler))
            behaviour = _on(self._pool_of(path), behaviour)
            self._handlers[path] = _handler(behaviour, handler.response_serializer)
        return self._handlers.get(path, self._unknown)

    def _pool_of(self, path: str) -> CallPool:
        """The threads for a call. Each pool is full by itself: long calls and streams do not have others refused."""
        if path in _LONG:
            return self._long_pool
        if path in self._methods and self._methods[path].takes_stream:
            return self._stream_pool
        return self._pool

    def _reflection(self, handler: Handler) -> Handler:
        """Shows the contract: to all in development, to hosts otherwise. On threads of its own, and not for ever."""
        stream: Any = handler.stream_stream

        def behaviour(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            if self._admit is not None:
                self._admit(iter(()), context)
            end = threading.Timer(_LONGEST_REFLECTION, context.cancel)
            end.daemon = True
            end.start()
            try:
                yield from stream(requests, context)
            finally:
                end.cancel()

        return grpc.stream_stream_rpc_method_handler(
            _on(self._reflection_pool, behaviour), handler.request_deserializer, handler.response_serializer
        )

    def _health_check(self, handler: Handler) -> Handler:
        """For everybody, and on threads of its own: it must be answered when all others are busy."""
        check: Any = handler.unary_unary
        parse: Any = handler.request_deserializer

        def behaviour(requests: Iterator[bytes], context: grpc.ServicerContext) -> Message:
            return cast(Message, check(parse(self._patience.receive(requests, context) or b""), context))

        return _handler(_on(self._health_pool, behaviour), handler.response_serializer)

    def _behind(self, walls: Sequence[Wall], method: Method, innermost: Proceed) -> Callable[..., Message]:
        way = innermost
        for wall in reversed(walls):
            way = partial(wall, proceed=way)
        return partial(self._serve, method, way)

    def _serve(self, method: Method, way: Proceed, requests: Iterator[bytes], context: grpc.ServicerContext) -> Message:
        """One call: to a response, or to an abort."""
        left = seconds_left(context)
        if method.takes_stream:
            left = _LONGEST_STREAM if left is None else min(left, _LONGEST_STREAM)
        lifetime = Lifetime(left)
        if not context.add_callback(lifetime.end):
            context.abort_with_status(status.status_of(DeadlineExceeded()))
        receive = partial(self._patience.receive, requests, context, in_stream=method.takes_stream)
        return way(CallContext(method, context, receive, lifetime=lifetime))


def _servicer(handler: Handler) -> Proceed:
    behaviour: Any = handler.unary_unary or handler.stream_unary  # takes our context, not grpc's
    return lambda call: behaviour(call.request, call)


def _unknown(_: CallContext) -> Message:
    raise MethodUnknown


def _handler(behaviour: Callable[..., Message], serializer: Callable[[Message], bytes] | None) -> Handler:
    """Requests come as a stream of bytes: they are waited for and parsed behind the walls. Callers notice nothing."""
    return grpc.stream_unary_rpc_method_handler(behaviour, request_deserializer=None, response_serializer=serializer)


def _overloaded_handler() -> Handler:
    """Refuses at once, on a thread of its own: those of the pool are what is short."""
    told = status.status_of(Overloaded())

    def refuse(_: Iterator[bytes], context: grpc.ServicerContext) -> Message:
        context.abort_with_status(told)
        raise AssertionError("abort returns never")

    return _handler(_on(ThreadPoolExecutor(1, "refuse"), refuse), None)


def _on(pool: ThreadPoolExecutor, behaviour: Callable[..., Any]) -> Callable[..., Any]:
    """*behaviour*, to be run on *pool*: grpc looks for this attribute."""
    behaviour.experimental_thread_pool = pool  # type: ignore[attr-defined]
    return behaviour
