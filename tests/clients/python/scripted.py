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
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from muniment.v1 import (
    agent_pb2,
    agent_service_pb2,
    audit_pb2,
    audit_service_pb2,
    block_pb2,
    block_service_pb2,
    classification_pb2,
    memory_pb2,
    memory_service_pb2,
    note_pb2,
    note_service_pb2,
    passage_pb2,
    passage_service_pb2,
    prompt_pb2,
    prompt_service_pb2,
    session_pb2,
    session_service_pb2,
)

CONTRACT = (
    agent_service_pb2,
    audit_service_pb2,
    block_service_pb2,
    memory_service_pb2,
    note_service_pb2,
    passage_service_pb2,
    prompt_service_pb2,
    session_service_pb2,
)
METHODS = {
    method.name: method
    for module in CONTRACT
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}

NOON = Timestamp(seconds=1_760_000_000)
NOTE_ID = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"
PASSAGE_ID = "c7a1b1de-0f3c-4f0a-8f0e-2f1f0a7c9e55"
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
NOTE = note_pb2.Note(
    note_id=NOTE_ID,
    tier=note_pb2.TIER_MEMORY,
    content="Ada travels by night train only",
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)
USAGE = note_pb2.Usage(tier=note_pb2.TIER_MEMORY, used_chars=31, limit_chars=2200, percent=1)
BLOCK = block_pb2.Block(
    owner_agent_id="ada",
    label="personality",
    content="Dry humor, no jargon.",
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    etag="item-1",
    create_time=NOON,
    update_time=NOON,
)
PASSAGE = passage_pb2.Passage(
    passage_id=PASSAGE_ID,
    content="Booked the sleeper to Vienna.",
    tags=["travel"],
    thread="trip",
    author="Ada",
    event_time=NOON,
    classification=classification_pb2.CLASSIFICATION_PUBLIC,
    create_time=NOON,
)
RULER = "═" * 48
PROMPT = f"""\
### personality
Dry humor, no jargon.
Never before nine.

{RULER}
MEMORY (agent notes) [1% — 31/2,200 chars]
{RULER}
Ada travels by night train only"""
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
    "EraseItems": agent_service_pb2.EraseItemsResponse(),
    "UndeleteItem": agent_service_pb2.UndeleteItemResponse(),
    "OpenSession": session_service_pb2.OpenSessionResponse(session=SESSION, token=TOKEN),
    "GetSession": session_service_pb2.GetSessionResponse(session=SESSION),
    "ListSessions": session_service_pb2.ListSessionsResponse(sessions=[SESSION]),
    "RaiseTaint": session_service_pb2.RaiseTaintResponse(session=SESSION),
    "ResetSession": session_service_pb2.ResetSessionResponse(session=SESSION, token=TOKEN),
    "CloseSession": session_service_pb2.CloseSessionResponse(),
    "SaveMemory": memory_service_pb2.SaveMemoryResponse(memory=MEMORY),
    "SaveMemories": memory_service_pb2.SaveMemoriesResponse(
        memories=[MEMORY], classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "DeleteMemories": memory_service_pb2.DeleteMemoriesResponse(deleted_count=2, more=True),
    "RenameMemory": memory_service_pb2.RenameMemoryResponse(
        memory=MEMORY, revealed=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "GetMemory": memory_service_pb2.GetMemoryResponse(memory=MEMORY),
    "ListMemories": memory_service_pb2.ListMemoriesResponse(
        memories=[MEMORY], classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "SearchMemories": memory_service_pb2.SearchMemoriesResponse(
        results=[memory_service_pb2.MemoryResult(memory=MEMORY, score=1.5, snippet="Assam, no sugar")],
        classification=classification_pb2.CLASSIFICATION_PUBLIC,
        semantic=True,
        reranked=True,
    ),
    "DeleteMemory": memory_service_pb2.DeleteMemoryResponse(),
    "AddNote": note_service_pb2.AddNoteResponse(note=NOTE, usage=USAGE),
    "UpdateNote": note_service_pb2.UpdateNoteResponse(note=NOTE, usage=USAGE),
    "DeleteNote": note_service_pb2.DeleteNoteResponse(usage=USAGE),
    "SearchNotes": note_service_pb2.SearchNotesResponse(
        results=[note_service_pb2.NoteResult(note=NOTE, score=1.5, snippet="night train")],
        usage=USAGE,
        classification=classification_pb2.CLASSIFICATION_PUBLIC,
        semantic=True,
        reranked=True,
    ),
    "ListNotes": note_service_pb2.ListNotesResponse(
        notes=[NOTE], usage=USAGE, classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "EditNotes": note_service_pb2.EditNotesResponse(
        notes=[NOTE], usage=USAGE, classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "ListBlocks": block_service_pb2.ListBlocksResponse(
        blocks=[BLOCK], classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "GetBlock": block_service_pb2.GetBlockResponse(block=BLOCK),
    "UpdateBlock": block_service_pb2.UpdateBlockResponse(block=BLOCK),
    "EditBlock": block_service_pb2.EditBlockResponse(block=BLOCK),
    "DeleteBlock": block_service_pb2.DeleteBlockResponse(),
    "CreateSharedBlock": block_service_pb2.CreateSharedBlockResponse(),
    "DeleteSharedBlock": block_service_pb2.DeleteSharedBlockResponse(),
    "AttachBlock": block_service_pb2.AttachBlockResponse(),
    "DetachBlock": block_service_pb2.DetachBlockResponse(),
    "ListBlockConsumers": block_service_pb2.ListBlockConsumersResponse(agent_ids=["bob", "cleo"]),
    "StorePassage": passage_service_pb2.StorePassageResponse(passage=PASSAGE),
    "ImportPassages": passage_service_pb2.ImportPassagesResponse(stored_count=2, existing_count=1),
    "GetPassage": passage_service_pb2.GetPassageResponse(passage=PASSAGE),
    "ListPassages": passage_service_pb2.ListPassagesResponse(
        passages=[PASSAGE], classification=classification_pb2.CLASSIFICATION_PUBLIC
    ),
    "SearchPassages": passage_service_pb2.SearchPassagesResponse(
        results=[passage_service_pb2.PassageResult(passage=PASSAGE, score=1.5, snippet="sleeper to Vienna")],
        classification=classification_pb2.CLASSIFICATION_PUBLIC,
        semantic=True,
        reranked=True,
    ),
    "DeletePassage": passage_service_pb2.DeletePassageResponse(),
    "DeletePassages": passage_service_pb2.DeletePassagesResponse(deleted_count=3),
    "RenderPrompt": prompt_service_pb2.RenderPromptResponse(
        text=PROMPT,
        sections=[
            prompt_pb2.PromptSection(
                kind=prompt_pb2.PROMPT_SECTION_KIND_BLOCK,
                label="personality",
                owner_agent_id="ada",
                classification=classification_pb2.CLASSIFICATION_PUBLIC,
            ),
            prompt_pb2.PromptSection(
                kind=prompt_pb2.PROMPT_SECTION_KIND_MEMORY,
                note_ids=[NOTE_ID],
                classification=classification_pb2.CLASSIFICATION_PUBLIC,
            ),
        ],
        usage=[USAGE, note_pb2.Usage(tier=note_pb2.TIER_USER, limit_chars=1375)],
        classification=classification_pb2.CLASSIFICATION_PUBLIC,
        etag="hash-of-the-prompt",
    ),
    "ListAuditEvents": audit_service_pb2.ListAuditEventsResponse(audit_events=[AUDIT_EVENT]),
    "GetAuditCheckpoint": audit_service_pb2.GetAuditCheckpointResponse(
        checkpoint=audit_pb2.AuditCheckpoint(
            classification=classification_pb2.CLASSIFICATION_PUBLIC,
            seal_number=2,
            event_count=5,
            head_hash="ab",
            time=NOON,
        )
    ),
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
            scripted = self._script[method].popleft() if self._script[method] else ANSWERS[method]
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
