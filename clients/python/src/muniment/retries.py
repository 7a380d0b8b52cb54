"""Decides which calls are retried, and when.

The channel itself retries only calls that never reached the server. All others are retried here, after UNAVAILABLE, and
after RESOURCE_EXHAUSTED with a RetryInfo, but never past the deadline of the call.
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

# Every method has its own request message, which therefore identifies the method.
METHODS = {
    method.input_type.full_name: method
    for module in CONTRACT
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}

# These methods are idempotent, but the second response differs from the first: not found, WRITE_LEVEL_MISMATCH, or an
# invalid credential, and without `revealed`. After a silent retry, a caller would take a success for a failure.
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

# An item with an id from the client is added only once. The same holds for several notes, if all edits add one. With
# other edits, a retry could add a note that the first attempt did not, because a later edit changed a duplicate.
SAFE_IF: dict[str, Callable[[Any], bool]] = {
    "AddNote": lambda request: bool(request.note_id),
    "StorePassage": lambda request: bool(request.passage_id),
    "EditNotes": lambda request: request.validate_only or all(edit.add.note_id for edit in request.edits),
}

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Retries:
    """How many attempts a call has, and how long to pause between them.

    Pauses are in seconds. They double from *pause* up to *longest_pause*, and are shortened at random by up to half, so
    that clients do not all return at once. A delay that the server asks for is added.
    """

    attempts: int = 4
    pause: float = 0.1
    longest_pause: float = 2.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.pause < 0 or self.longest_pause < 0:
            raise ValueError("attempts must be at least 1, and pauses must not be negative")

    def pauses(self) -> Iterator[float]:
        """The pause after each attempt but the last."""
        longest = self.pause
        for _ in range(self.attempts - 1):
            longest = min(longest, self.longest_pause)
            yield longest * random.uniform(0.5, 1)
            longest *= 2


NO_RETRIES = Retries(attempts=1)


def may_repeat(request: Message) -> bool:
    """Whether *request* may be retried if it is unknown whether it was executed.

    Never with an etag: if the first attempt was executed, the etag is stale.
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
    """Call *attempt*, with the remaining seconds, until it succeeds or must not be retried."""
    deadline = time.monotonic() + timeout
    for pause in retries.pauses():
        try:
            return attempt(deadline - time.monotonic())
        except MunimentError as error:
            if not _is_transient(error):
                raise
            pause += error.retry_after or 0.0
            if time.monotonic() + pause >= deadline:
                raise
        time.sleep(pause)
    return attempt(deadline - time.monotonic())


def _is_transient(error: MunimentError) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, ResourceExhausted):
        return error.retry_after is not None
    return isinstance(error, Unavailable)
