"""Decides which calls are retried, and when.

A call is retried until its deadline: after UNAVAILABLE, and after RESOURCE_EXHAUSTED with a RetryInfo, if it may be
repeated; any call for which no connection could be made. The channel itself retries what a closing connection refused.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from google.protobuf.message import Message

from muniment.errors import MunimentError, ResourceExhausted, TLSMismatch, Unavailable
from muniment.v1 import (
    agent_service_pb2,
    audit_service_pb2,
    block_service_pb2,
    memory_service_pb2,
    note_service_pb2,
    passage_service_pb2,
    policy_pb2,
    prompt_service_pb2,
    release_service_pb2,
    session_service_pb2,
    version_service_pb2,
)

CONTRACT = (
    agent_service_pb2,
    audit_service_pb2,
    block_service_pb2,
    memory_service_pb2,
    note_service_pb2,
    passage_service_pb2,
    prompt_service_pb2,
    release_service_pb2,
    session_service_pb2,
    version_service_pb2,
)

# Every method has its own request message, which therefore identifies the method.
METHODS = {
    method.input_type.full_name: method
    for module in CONTRACT
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}

# What some requests need to be repeated. Memories are saved again if none has an etag. An item with an id from the
# client is added only once. The same holds for several notes, if all edits add one. With other edits, a retry could add
# a note that the first attempt did not, because a later edit changed a duplicate.
SAFE_IF: dict[str, Callable[[Any], bool]] = {
    "AddNote": lambda request: bool(request.note_id),
    "SaveMemories": lambda request: not any(memory.etag for memory in request.memories),
    "StorePassage": lambda request: bool(request.passage_id),
    "EditNotes": lambda request: request.validate_only or all(edit.add.note_id for edit in request.edits),
}

Response = TypeVar("Response")

_LOG = logging.getLogger("muniment")


FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0

# About half a second after the first attempt. At a terminal, people learn why they wait.
WARN_AFTER = 2

# How gRPC's messages begin if the name of the server has no address: newer versions, and 1.78.
NOT_RESOLVED = ("errors resolving ", "DNS resolution failed ")

# How gRPC's messages begin if it could not connect. It reports this in no other way.
NOT_CONNECTED = ("failed to connect to all addresses", *NOT_RESOLVED)


def pauses() -> Iterator[float]:
    """The pause after each attempt, in seconds. They double, and are shortened at random by up to half.

    The randomness keeps clients from returning all at once. The longest pause bounds what the clients of a server that
    is away or overloaded send: at most one attempt per call in one to two seconds.
    """
    longest = FIRST_PAUSE
    while True:
        yield longest * random.uniform(0.5, 1)
        longest = min(2 * longest, LONGEST_PAUSE)


def may_repeat(request: Message) -> bool:
    """Whether *request* may be retried if it is unknown whether it was executed: as the contract says of its method.

    Never with an etag: if the first attempt was executed, the etag is stale.
    """
    method = METHODS[request.DESCRIPTOR.full_name]
    policy = method.GetOptions().Extensions[policy_pb2.policy]
    if not policy.may_be_repeated or bool(getattr(request, "etag", "")):
        return False
    return method.name not in SAFE_IF or SAFE_IF[method.name](request)


def may_help(error: MunimentError, *, safe: bool) -> bool:
    """Whether a call that failed with *error* should be retried. *safe*: whether it may be repeated."""
    return not isinstance(error, TLSMismatch) and (_never_sent(error) or (safe and _is_transient(error)))


class Attempts:
    """The attempts of one call: how long each may take, and the pause before the next. Does no I/O.

    For *connect_timeout* seconds, a call waits for a connection.
    """

    def __init__(
        self, again: Callable[[MunimentError], bool], timeout: float, connect_timeout: float = math.inf
    ) -> None:
        self._again = again
        self._deadline = time.monotonic() + timeout
        self._connected_by = time.monotonic() + connect_timeout
        self._pauses = enumerate(pauses())

    @property
    def seconds_left(self) -> float:
        """The seconds until the deadline."""
        return self._deadline - time.monotonic()

    def pause_after(self, error: MunimentError) -> float | None:
        """The seconds until the next attempt. None if there is none, or it would pass the deadline.

        A delay that the server asks for is added to the pause.
        """
        number, pause = next(self._pauses)
        pause += error.retry_after or 0.0
        seconds_left = self.seconds_left
        if _never_sent(error):
            seconds_left = min(seconds_left, self._connected_by - time.monotonic())
        if not self._again(error) or seconds_left <= pause:
            return None
        if number == WARN_AFTER and _never_sent(error):
            _LOG.warning("no connection to the server yet: trying for %.0f s more", seconds_left)
        return pause


def repeat(
    attempt: Callable[[float], Response],
    again: Callable[[MunimentError], bool],
    timeout: float,
    connect_timeout: float = math.inf,
) -> Response:
    """Call *attempt*, with the remaining seconds, until it succeeds, or *again* says no, or the deadline is near."""
    attempts = Attempts(again, timeout, connect_timeout)
    while True:
        try:
            return attempt(attempts.seconds_left)
        except MunimentError as error:
            if (pause := attempts.pause_after(error)) is None:
                raise
        time.sleep(pause)


def _never_sent(error: MunimentError) -> bool:
    return isinstance(error, Unavailable) and not error.reason and error.message.startswith(NOT_CONNECTED)


def _is_transient(error: MunimentError) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, ResourceExhausted):
        return error.retry_after is not None
    return isinstance(error, Unavailable)
