"""Which handler serves a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, cast

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionResponse

from muniment_server.domain.errors import DeadlineExceeded, MethodUnknown, Overloaded
from muniment_server.monitor.call import Call, Interceptor, Proceed, seconds_left
from muniment_server.monitor.interceptors import Authorize
from muniment_server.monitor.policy import Method
from muniment_server.monitor.scopes import Scopes
from muniment_server.monitor.status import status_of
from muniment_server.postgres.deadline import Deadline
from muniment_server.transport.admission.admission import Admission, Route
from muniment_server.transport.call_log import REQUEST_ID
from muniment_server.transport.descriptions import SERVED, Descriptions
from muniment_server.transport.incoming import Arrivals, Incoming, Rejection, certificate_in, in_its_turn, nothing
from muniment_server.transport.parsing import parsed
from muniment_server.transport.reflection import REFLECT, Reflection

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
"""Not served, which the protocol allows: whoever watches and does not read would stop the checks of all others."""
_NO_WATCH = Rejection(MethodUnknown())
_REFLECTION = "/grpc.reflection."
_UNKNOWN = Method.outside_the_contract("Unknown", for_sessions=True)
_MAX_STREAM_SECONDS = 600.0
_MAX_METADATA_BYTES = 8 * 1024
"""More than grpc itself lets in, once a caller has acknowledged its settings."""
_EXPIRED = status_of(DeadlineExceeded())


class Dispatcher(grpc.ServerInterceptor):
    """Chooses the handler of each call. A handler is made once for each method, behind all interceptors.

    grpc asks on its one serving thread, so nothing but choosing happens there.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        interceptors: Sequence[Interceptor],
        scopes: Scopes,
        admission: Admission,
        descriptions: Descriptions,
        *,
        open_reflection: bool,
    ) -> None:
        self._methods = methods
        self._interceptors = interceptors
        self._scopes = scopes
        self._admission = admission
        self.arrivals = Arrivals(admission.arrived)
        """What grpc is given as its thread pool."""
        self._handlers: dict[str, Handler] = {_HEALTH_WATCH: self._handler(None, _no_behavior, None, _NO_WATCH)}
        self._too_large = self._handler(None, _no_behavior, None, Rejection(Overloaded()))
        until_authorized = interceptors[: 1 + [type(one) for one in interceptors].index(Authorize)]
        self._unknown = self._handler(_UNKNOWN, self._behind(until_authorized, _UNKNOWN, _unknown), None)
        self._authorize = None if open_reflection else self._behind(until_authorized, REFLECT, lambda _: Message())
        self._reflections = Reflection(admission, self._authorize)
        for service in SERVED:
            self._handlers[f"/{service}/ServerReflectionInfo"] = self._reflection(descriptions)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler for one call."""
        path = handler_call_details.method
        if sum(len(key) + len(value) for key, value in handler_call_details.invocation_metadata) > _MAX_METADATA_BYTES:
            return self._too_large  # at once: while a call waits for anything, its metadata is kept
        return self._handlers.get(path) or self._make(path, continuation(handler_call_details))

    def _make(self, path: str, handler: Handler | None) -> Handler | None:
        if path.startswith(_REFLECTION):
            return None  # grpc itself refuses a version that this server lacks, so that tools ask for another
        if handler is not None and path == _HEALTH_CHECK:
            self._handlers[path] = self._handler(None, _health_check(handler), handler.response_serializer)
        elif handler is not None and path in self._methods:
            method = self._methods[path]
            behavior = self._behind(self._interceptors, method, _servicer(handler))
            self._handlers[path] = self._handler(method, behavior, handler.response_serializer)
        return self._handlers.get(path, self._unknown)

    def _handler(
        self,
        method: Method | None,
        behavior: Callable[[Incoming, grpc.ServicerContext], Message],
        serializer: Callable[[Message], bytes] | None,
        refusal: Rejection | None = None,
    ) -> Handler:
        """Requests arrive as a stream of bytes, to be parsed behind the interceptors. Callers cannot tell."""
        return grpc.stream_unary_rpc_method_handler(
            _on(self.arrivals, Route(method, behavior, refusal)),
            request_deserializer=None,
            response_serializer=serializer,
        )

    def _reflection(self, descriptions: Descriptions) -> Handler:
        """Reflection of the contract. It authorizes its callers itself, unless it is open to all."""

        def behavior(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Message]:
            if self._authorize is not None:
                self._authorize(None, context)
            yield from descriptions.answers(requests, context)

        return grpc.stream_stream_rpc_method_handler(
            _on(self._reflections, behavior), None, ServerReflectionResponse.SerializeToString
        )

    def _behind(
        self, interceptors: Sequence[Interceptor], method: Method, innermost: Proceed
    ) -> Callable[..., Message]:
        proceed = innermost
        for interceptor in reversed(interceptors):
            proceed = partial(interceptor, proceed=proceed)
        return partial(self._serve, method, proceed)

    def _serve(
        self, method: Method, proceed: Proceed, incoming: Incoming | None, context: grpc.ServicerContext
    ) -> Message:
        """Serve one call: return a response, or abort."""
        left = seconds_left(context)
        if method.takes_stream:
            left = _MAX_STREAM_SECONDS if left is None else min(left, _MAX_STREAM_SECONDS)
        deadline = Deadline(left)
        is_waited_for = context.add_callback(deadline.expire)
        if incoming is None or incoming.record is None:
            token = self._admission.token_of(
                context.invocation_metadata() or (), lambda: certificate_in(context.auth_context())
            )
            return proceed(Call(method, context, nothing, deadline, self._scopes, token, in_its_turn))
        record = incoming.record
        record.begin_trace(incoming.metadata)
        call = Call(
            method,
            context,
            incoming.next_message,
            deadline,
            self._scopes,
            incoming.token,
            incoming.in_turn,
            request_id=record.request_id,
        )
        try:
            if not is_waited_for:
                call.error = DeadlineExceeded()
                context.abort_with_status(_EXPIRED)
            response = proceed(call)
        except Exception as error:
            record.principal = call.principal or record.principal
            record.failed(call.error or error)
            call.error = None  # its traceback refers to the call: a cycle
            context.set_trailing_metadata((*context.trailing_metadata(), (REQUEST_ID, record.request_id)))
            raise
        record.succeeded()
        context.set_trailing_metadata(((REQUEST_ID, record.request_id),))
        return response


def _servicer(handler: Handler) -> Proceed:
    behavior: Any = handler.unary_unary or handler.stream_unary  # takes a CallContext, not grpc's context

    def serve(call: Call) -> Message:
        context = call.for_servicer()
        try:
            return cast(Message, behavior(call.request, context))
        finally:
            context.end()

    return serve


def _health_check(handler: Handler) -> Callable[[Incoming, grpc.ServicerContext], Message]:
    """For everybody, on threads of its own: it must be answered when all others are busy."""
    check: Any = handler.unary_unary

    def behavior(call: Incoming, context: grpc.ServicerContext) -> Message:
        request = parsed(health_pb2.HealthCheckRequest, call.next_message() or b"", context)
        return cast(Message, check(request, context))

    return behavior


def _no_behavior(_: Incoming, __: grpc.ServicerContext) -> Message:
    raise AssertionError("every call is refused before")


def _unknown(_: Call) -> Message:
    raise MethodUnknown


def _on(pool: ThreadPoolExecutor, behavior: Any) -> Any:
    """*behavior*, to run on *pool*: grpc looks for this attribute."""
    behavior.experimental_thread_pool = pool
    return behavior
