"""Short words for what a caller reads of an answer."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2, status_pb2

from muniment_server.domain.classification import Classification
from tests.support.services import Caller, Outcome, failure_of, reason_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
LEVELS = tuple(Classification)
PAIRS = [(one, other) for one in Classification for other in Classification]
UP = [*itertools.pairwise(Classification), (PUBLIC, RESTRICTED)]
"""A lower and a higher level: neighbors, and the farthest. All pairs are in tests/schema/postgres and
tests/proof/noninterference."""


def heavy(size: int) -> str:
    """A text of *size* bytes that is indexed fast: one word of few characters. Symbols take seven times as long."""
    return "\U0001d7d8" * (size // 4) + "x" * (size % 4)


def in_future(**ahead: float) -> Timestamp:
    """A time of the contract, that far from now."""
    time = Timestamp()
    time.FromDatetime(datetime.now(UTC) + timedelta(**ahead))
    return time


def packed_status(outcome: Outcome) -> status_pb2.Status:
    """The google.rpc.Status of a failure."""
    values = [value for name, value in outcome.trailers if name == "grpc-status-details-bin"]
    return status_pb2.Status.FromString(values[0]) if values else status_pb2.Status()


def detail(outcome: Outcome, kind: type[Any]) -> Any:
    """The detail of this type; an empty one when there is none."""
    message = kind()
    for packed in packed_status(outcome).details:
        if packed.Unpack(message):
            break
    return message


def fields_of(outcome: Outcome) -> list[str]:
    """The fields that a failure says break rules."""
    return [violation.field for violation in detail(outcome, error_details_pb2.BadRequest).field_violations]


def refusal(call: Any, **fields: Any) -> str:
    """Code and reason of a call that must fail: `NOT_FOUND MEMORY_NOT_FOUND`."""
    outcome = failure_of(call, **fields)
    return f"{outcome.code.name} {reason_of(outcome)}"


def invalid(call: Any, **fields: Any) -> list[str]:
    """The fields of a call that must fail as INVALID_ARGUMENT."""
    outcome = failure_of(call, **fields)
    assert (outcome.code.name, reason_of(outcome)) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    return fields_of(outcome)


def keys(response: Any) -> list[str]:
    """The keys in a list or a search, in order."""
    if response.DESCRIPTOR.name == "ListMemoriesResponse":
        return [memory.key for memory in response.memories]
    return [result.memory.key for result in response.results]


def pages(call: Any, **fields: Any) -> list[Any]:
    """All pages of a list."""
    found = [call(**fields)]
    while found[-1].next_page_token:
        found.append(call(page_token=found[-1].next_page_token, **fields))
    return found


def events(host: Caller, **filters: Any) -> list[Any]:
    """All audit events of the host's tenant, oldest first."""
    newest_first = pages(host.list_audit_events, page_size=250, **filters)
    return [event for page in newest_first for event in page.audit_events][::-1]
