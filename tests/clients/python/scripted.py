"""A server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from muniment.retries import CONTRACT
from muniment.v1 import classification_pb2, note_pb2
from tests.rpcs import RPCS
from tests.support.examples import NOTE_ID, USAGE

METHODS = {
    method.name: method
    for module in CONTRACT
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


@dataclass(frozen=True)
class Asked:
    """One call as it arrived."""

    method: str
    request: Message
    metadata: Mapping[str, str | bytes]
    seconds_left: float


@dataclass(frozen=True)
class SentStatus(grpc.Status):
    """A status with all of its trailers."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, str | bytes], ...]


def request_id(number: int) -> str:
    """The id of an answer, counted from 1, in the form that the server's have."""
    return f"{number:024x}"


@dataclass
class ScriptedServer(grpc.GenericRpcHandler):
    """Answers every method of the contract: as scripted, then well.

    Of a stream it reads what *reads* says, or all, before it answers. gRPC may report a canceled stream as
    one that has ended, and only then as canceled: *cancel_timeout* is how many seconds to wait for that.
    If it *numbers_answers*, the request id of the first is `request_id(1)`.
    """

    asked: list[Asked] = field(default_factory=list)
    reads: int | None = None
    cancel_timeout: float = 0
    numbers_answers: bool = False
    ended: list[str] = field(default_factory=list)
    _script: dict[str, deque[Message]] = field(default_factory=lambda: defaultdict(deque))
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def script(self, method: str, *answers: Message) -> None:
        """What *method* answers the next times: responses or statuses."""
        self._script[method].extend(answers)

    def requests(self, method: str) -> list[Message]:
        """What *method* was asked, in order: of a stream, each message."""
        return [each.request for each in self.asked if each.method == method]

    def wait_until(self, predicate: Callable[[], bool]) -> bool:
        """Whether *predicate* comes true within a minute; checked when something arrives or ends."""
        with self._lock:
            return self._lock.wait_for(predicate, timeout=60)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = METHODS[handler_call_details.method.rpartition("/")[2]]
        make = grpc.stream_unary_rpc_method_handler if method.client_streaming else grpc.unary_unary_rpc_method_handler
        behavior = self._stream(method.name) if method.client_streaming else self._unary(method.name)
        return make(
            behavior,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )

    def _unary(self, method: str) -> Callable[[Message, grpc.ServicerContext], Message]:
        def answer(request: Message, context: grpc.ServicerContext) -> Message:
            self._note(method, request, context)
            return self._answer(method, context)

        return answer

    def _stream(self, method: str) -> Callable[[Iterator[Message], grpc.ServicerContext], Message]:
        def answer(requests: Iterator[Message], context: grpc.ServicerContext) -> Message:
            over = threading.Event()
            context.add_callback(over.set)
            with suppress(grpc.RpcError):
                for request in islice(requests, self.reads):
                    self._note(method, request, context)
            self._end("canceled" if over.wait(self.cancel_timeout) or not context.is_active() else "whole")
            return self._answer(method, context)

        return answer

    def _note(self, method: str, request: Message, context: grpc.ServicerContext) -> None:
        metadata = dict(context.invocation_metadata())
        with self._lock:
            self.asked.append(Asked(method, request, metadata, context.time_remaining()))
            self._lock.notify_all()

    def _end(self, how: str) -> None:
        with self._lock:
            self.ended.append(how)
            self._lock.notify_all()

    def _answer(self, method: str, context: grpc.ServicerContext) -> Message:
        with self._lock:
            scripted = self._script[method].popleft() if self._script[method] else RPCS[method].answer
            trailers = (("request-id", request_id(next(self._numbers))),) if self.numbers_answers else ()
        if isinstance(scripted, Status):
            refusal = rpc_status.to_status(scripted)
            context.abort_with_status(
                SentStatus(refusal.code, refusal.details, (*refusal.trailing_metadata, *trailers))
            )
        context.set_trailing_metadata(trailers)
        return scripted


def serve(scripted: ScriptedServer, address: str, credentials: grpc.ServerCredentials | None = None) -> Any:
    """A running server and its port."""
    server = grpc.server(ThreadPoolExecutor(max_workers=4), handlers=[scripted])
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    server.start()
    return server, port


def status(code: grpc.StatusCode, *details: Message, message: str = "No.") -> Message:
    """A status with details."""
    packed = []
    for detail in details:
        packed.append(Packed())
        packed[-1].Pack(detail)
    made: Message = Status(code=code.value[0], message=message, details=packed)
    return made


def error_info(reason: str, domain: str = "muniment.v1", **metadata: str) -> Message:
    made: Message = ErrorInfo(reason=reason, domain=domain, metadata=metadata)
    return made


def bad_request(**fields: str) -> Message:
    made: Message = BadRequest(
        field_violations=[BadRequest.FieldViolation(field=name, description=rule) for name, rule in fields.items()]
    )
    return made


def retry_info(seconds: float) -> Message:
    delay = Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    made: Message = RetryInfo(retry_delay=delay)
    return made


def unavailable(*details: Message) -> Message:
    return status(grpc.StatusCode.UNAVAILABLE, error_info("UNAVAILABLE"), *details)


def overloaded(*details: Message) -> Message:
    return status(grpc.StatusCode.RESOURCE_EXHAUSTED, error_info("OVERLOADED"), *details)


def over_budget(**entry: Any) -> Message:
    detail = note_pb2.BudgetExceeded(
        usage=USAGE,
        would_be_chars=2300,
        over_by_chars=100,
        entries=[
            note_pb2.BudgetEntry(
                **{
                    "note_id": NOTE_ID,
                    "length_chars": 31,
                    "preview": "Ada travels by night train only",
                    "own_level": True,
                    "classification": classification_pb2.CLASSIFICATION_PUBLIC,
                    **entry,
                }
            )
        ],
    )
    return status(grpc.StatusCode.FAILED_PRECONDITION, error_info("BUDGET_EXCEEDED"), detail)
