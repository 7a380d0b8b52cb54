"""The calls of a load: what is called, how often, and what became of each call."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from muniment.v1 import (
    classification_pb2,
    memory_service_pb2,
    note_service_pb2,
    prompt_service_pb2,
    session_service_pb2,
)

SAVE, GET, SEARCH, LIST = "SaveMemory", "GetMemory", "SearchMemories", "ListMemories"
LIST_NOTES, UPDATE_NOTE, RENDER = "ListNotes", "UpdateNote", "RenderPrompt"
OPEN, RAISE = "OpenSession", "RaiseTaint"
OPERATIONS = (SAVE, GET, SEARCH, LIST, LIST_NOTES, UPDATE_NOTE, RENDER, OPEN, RAISE)
MIX: Mapping[str, float] = {
    SAVE: 20, GET: 40, SEARCH: 15, LIST: 5, LIST_NOTES: 5, UPDATE_NOTE: 5, RENDER: 5, OPEN: 2.5,
}  # fmt: skip
"""Shares of the arrivals. A RaiseTaint follows each OpenSession, so these are percentages of the calls."""
CALLS_PER_ARRIVAL = (sum(MIX.values()) + MIX[OPEN]) / sum(MIX.values())
_SERVICES = {
    SAVE: "MemoryService", GET: "MemoryService", SEARCH: "MemoryService", LIST: "MemoryService",
    LIST_NOTES: "NoteService", UPDATE_NOTE: "NoteService", RENDER: "PromptService",
    OPEN: "SessionService", RAISE: "SessionService",
}  # fmt: skip
HOST_OPERATIONS = frozenset((OPEN, RAISE))
"""The operations that are called with a host key."""
NOT_SENT = "NOT_SENT"
"""The status of a call whose caller was still busy when the load ended."""
PAGE = 20
"""Memories in a page of ListMemories."""
RESULTS = 10


class Caller(TypedDict):
    """One session, as the load generator knows it."""

    token: str
    agent_id: str
    keys: Sequence[str]
    """The keys of memories that it sees."""
    own_keys: Sequence[str]
    """The keys of memories at its own level, which it may replace."""
    note_id: str


class Call(NamedTuple):
    """One call, in seconds."""

    operation: str
    start: float
    """When it was to start, after the beginning of the load."""
    late: float
    """How much later it was sent, although its caller was free: the delay of the load generator."""
    latency: float
    """From when it was to start until its answer was there."""
    status: str
    """The status code of gRPC, or NOT_SENT."""


def method(operation: str) -> str:
    """The path of a method."""
    return f"/muniment.v1.{_SERVICES[operation]}/{operation}"


def requests(
    caller: Caller, texts: Sequence[str], queries: Sequence[str], source: random.Random
) -> Mapping[str, Callable[[], bytes]]:
    """How to make a request of each operation. A save replaces a memory, so that the store keeps its size."""

    def content() -> str:
        return f"{source.choice(texts)} ({source.getrandbits(40)})"

    return {
        SAVE: lambda: memory_service_pb2.SaveMemoryRequest(
            key=source.choice(caller["own_keys"]), content=content()
        ).SerializeToString(),
        GET: lambda: memory_service_pb2.GetMemoryRequest(key=source.choice(caller["keys"])).SerializeToString(),
        SEARCH: lambda: memory_service_pb2.SearchMemoriesRequest(
            query=source.choice(queries), max_results=RESULTS
        ).SerializeToString(),
        LIST: lambda: memory_service_pb2.ListMemoriesRequest(page_size=PAGE).SerializeToString(),
        LIST_NOTES: lambda: note_service_pb2.ListNotesRequest().SerializeToString(),
        UPDATE_NOTE: lambda: note_service_pb2.UpdateNoteRequest(
            note_id=caller["note_id"], content=content()[-200:]
        ).SerializeToString(),
        RENDER: lambda: prompt_service_pb2.RenderPromptRequest().SerializeToString(),
        OPEN: lambda: session_service_pb2.OpenSessionRequest(
            agent_id=caller["agent_id"], taint=classification_pb2.CLASSIFICATION_PUBLIC
        ).SerializeToString(),
    }


def raise_request(opened: bytes) -> bytes:
    """The request that raises the session of an answer to OpenSession."""
    session = session_service_pb2.OpenSessionResponse.FromString(opened).session
    return session_service_pb2.RaiseTaintRequest(
        session_id=session.session_id, taint=classification_pb2.CLASSIFICATION_INTERNAL, reason="load"
    ).SerializeToString()


def to_csv(calls: Iterable[Call]) -> str:
    """One line for each call."""
    text = io.StringIO()
    csv.writer(text).writerows(
        (call.operation, f"{call.start:.6f}", f"{call.late:.6f}", f"{call.latency:.6f}", call.status) for call in calls
    )
    return text.getvalue()


def from_csv(text: str) -> Iterator[Call]:
    """The calls that `to_csv` wrote."""
    for operation, start, late, latency, status in csv.reader(io.StringIO(text)):
        yield Call(operation, float(start), float(late), float(latency), status)
