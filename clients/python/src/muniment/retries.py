"""Which calls may be sent again, and when.

The channel repeats by itself only what never reached the server. Everything else is decided here: after
UNAVAILABLE, and after RESOURCE_EXHAUSTED with a RetryInfo, never past the deadline of the call.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

from muniment.errors import MunimentError, ResourceExhausted, Unavailable
from muniment.v1 import (
    agent_service_pb2,
    audit_service_pb2,
    block_service_pb2,
    memory_service_pb2,
    note_service_pb2,
    passage_service_pb2,
    prompt_service_pb2,
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

# Every method has a request of its own, so that a request names its method.
METHODS = {
    method.input_type.full_name: method
    for module in CONTRACT
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}

# Idempotent: twice does no more than once. But the second answer differs from the first (not found, or
# WRITE_LEVEL_MISMATCH, or the credential is gone, and `revealed` is lost), so whoever gets it after a
# silent repetition is told of a failure that was a success.
SECOND_ANSWER_DIFFERS = frozenset(
    {
        "CloseSession",
        "DeleteAgent",
        "DeleteBlock",
        "DeleteMemory",
        "DeleteNote",
        "DeletePassage",
        "DeleteSharedBlock",
        "DetachBlock",
    }
)

# What is added under an id of the client's is added once. That goes for several notes too, if all edits add: a note
# whose content is there already is not added, but would be the second time if a later edit has changed that content.
SAFE_IF: dict[str, Callable[[Any], bool]] = {
    "AddNote": lambda request: bool(request.note_id),
    "StorePassage": lambda request: bool(request.passage_id),
    "EditNotes": lambda request: request.validate_only or all(edit.add.note_id for edit in request.edits),
}

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is made at most, and how long to wait in between.

    Pauses are in seconds. They double from *pause* up to *longest_pause*, less up to half by chance, so
    that clients do not come back all at once. A server that names a time is given that time on top.
    """

    attempts: int = 4
    pause: float = 0.1
    longest_pause: float = 2.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.pause < 0 or self.longest_pause < 0:
            raise ValueError("attempts is at least 1, and pauses are not negative")

    def pauses(self) -> Iterator[float]:
        """The pause after each attempt but the last."""
        longest = self.pause
        for _ in range(self.attempts - 1):
            longest = min(longest, self.longest_pause)
            yield longest * random.uniform(0.5, 1)
            longest *= 2


NO_RETRIES = Retries(attempts=1)


def may_repeat(request: Message) -> bool:
    """Whether *request* may be sent again when nobody knows what became of it.

    With an etag never: if the first attempt did arrive, the second is stale.
    """
    method = METHODS[request.DESCRIPTOR.full_name]
    level = method.GetOptions().idempotency_level
    if level == MethodOptions.NO_SIDE_EFFECTS:
        return True
    if method.name in SAFE_IF:
        return SAFE_IF[method.name](request)
    if level != MethodOptions.IDEMPOTENT or method.name in SECOND_ANSWER_DIFFERS:
        return False
    return not getattr(request, "etag", "")


def repeat(attempt: Callable[[float], Response], retries: Retries, timeout: float) -> Response:
    """Call *attempt*, with the seconds that are left, until it succeeds or it is no use."""
    deadline = time.monotonic() + timeout
    for pause in retries.pauses():
        try:
            return attempt(deadline - time.monotonic())
        except MunimentError as error:
            if not _passes(error):
                raise
            pause += error.retry_after or 0.0
            if time.monotonic() + pause >= deadline:
                raise
        time.sleep(pause)
    return attempt(deadline - time.monotonic())


def _passes(error: MunimentError) -> bool:
    """Whether the same call may succeed a little later."""
    if isinstance(error, ResourceExhausted):
        return error.retry_after is not None
    return isinstance(error, Unavailable)
