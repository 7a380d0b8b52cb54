"""A server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from muniment.v1 import (
    agent_pb2,
    agent_service_pb2,
    audit_pb2,
    audit_service_pb2,
    classification_pb2,
    memory_pb2,
    memory_service_pb2,
    session_pb2,
    session_service_pb2,
)

CONTRACT = (agent_service_pb2, audit_service_pb2, memory_service_pb2, session_service_pb2)
METHODS = {
    method.name: method
    for module in CONTRACT
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}

NOON = Timestamp(seconds=1_760_000_000)
SESSION_ID = "9b2d0a52-52ac-4cf4-a3e0-0f9a0f0a5f11"
HOST_KEY = "mun_h_1_a-host-key"
TOKEN = "mun_s_1_a-session-token"

AGENT = agent_pb2.Agent(
    agent_id="ada",
    display_name="Ada",
    language="en",
    memory_settings=agent_pb2.MemorySettings(memory_enabled=True, memory_char_limit=0),
    create_time=NOON,
    update_time=NOON,
)
SESSION = session_pb2.Session(
    session_id=SESSION_ID,
    agent_id="ada",
    conversation_id="talk",
    taint=classification_pb2.CLASSIFICATION_INTERNAL,
    create_time=NOON,
    expire_time=NOON,
)
MEMORY = memory_pb2.Memory(
    key="tea",
    content="Assam, no sugar",
    tags=["taste"],
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)
AUDIT_EVENT = audit_pb2.AuditEvent(
    event_id="e1",
    time=NOON,
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    agent_id="ada",
    method="SaveMemory",
    outcome="OK",
    kind=audit_pb2.ITEM_KIND_MEMORY,
    item_id="i1",
    revision=1,
)

ANSWERS: Mapping[str, Any] = {
    "CreateAgent": agent_service_pb2.CreateAgentResponse(agent=AGENT),
    "GetAgent": agent_service_pb2.GetAgentResponse(agent=AGENT),
    "ListAgents": agent_service_pb2.ListAgentsResponse(agents=[AGENT]),
    "UpdateAgent": agent_service_pb2.UpdateAgentResponse(agent=AGENT),
    "DeleteAgent": agent_service_pb2.DeleteAgentResponse(),
    "OpenSession": session_service_pb2.OpenSessionResponse(session=SESSION, token=TOKEN),
    "GetSession": session_service_pb2.GetSessionResponse(session=SESSION),
    "ListSessions": session_service_pb2.ListSessionsResponse(sessions=[SESSION]),
    "RaiseTaint": session_service_pb2.RaiseTaintResponse(session=SESSION),
    "ResetSession": session_service_pb2.ResetSessionResponse(session=SESSION, token=TOKEN),
    "CloseSession": session_service_pb2.CloseSessionResponse(),
    "SaveMemory": memory_service_pb2.SaveMemoryResponse(memory=MEMORY),
    "GetMemory": memory_service_pb2.GetMemoryResponse(memory=MEMORY),
    "ListMemories": memory_service_pb2.ListMemoriesResponse(
        memories=[MEMORY], classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "SearchMemories": memory_service_pb2.SearchMemoriesResponse(
        results=[memory_service_pb2.MemoryResult(memory=MEMORY, score=1.5, snippet="Assam, no sugar")],
        classification=classification_pb2.CLASSIFICATION_PUBLIC,
        semantic=True,
    ),
    "DeleteMemory": memory_service_pb2.DeleteMemoryResponse(),
    "ListAuditEvents": audit_service_pb2.ListAuditEventsResponse(audit_events=[AUDIT_EVENT]),
}


@dataclass(frozen=True)
class Asked:
    """One call as it arrived."""

    method: str
    request: Message
    metadata: Mapping[str, str | bytes]
    seconds_left: float


@dataclass
class ScriptedServer(grpc.GenericRpcHandler):
    """Answers every method of the contract: as scripted, then well."""

    asked: list[Asked] = field(default_factory=list)
    _script: dict[str, deque[Message]] = field(default_factory=lambda: defaultdict(deque))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, method: str, *answers: Message) -> None:
        """What *method* answers the next times: responses or statuses."""
        self._script[method].extend(answers)

    def requests(self, method: str) -> list[Message]:
        """What *method* was asked, in order."""
        return [each.request for each in self.asked if each.method == method]

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = METHODS[handler_call_details.method.rpartition("/")[2]]
        return grpc.unary_unary_rpc_method_handler(
            self._behaviour(method.name),
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )

    def _behaviour(self, method: str) -> Callable[[Message, grpc.ServicerContext], Message]:
        def answer(request: Message, context: grpc.ServicerContext) -> Message:
            metadata = dict(context.invocation_metadata())
            with self._lock:
                self.asked.append(Asked(method, request, metadata, context.time_remaining()))
                scripted = self._script[method].popleft() if self._script[method] else ANSWERS[method]
            if isinstance(scripted, Status):
                context.abort_with_status(rpc_status.to_status(scripted))
            return scripted

        return answer


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
