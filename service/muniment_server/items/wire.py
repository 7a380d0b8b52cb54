"""Conversions between the contract and the domain that every noun needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1 import classification_pb2, note_pb2
from muniment_server.domain.budgets import Usage
from muniment_server.domain.classification import Classification, join
from muniment_server.domain.errors import FieldViolation, InvalidArgument

_NANOS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def level_to_proto(level: Classification | None) -> classification_pb2.Classification.ValueType:
    """The same number in the contract; None is UNSPECIFIED."""
    return classification_pb2.Classification.ValueType(level or 0)


def joined(levels: Iterable[Classification]) -> classification_pb2.Classification.ValueType:
    """The label of a response: the join of the *levels* of what it contains."""
    return level_to_proto(join(levels))


def time_to_proto(time: datetime | None) -> Timestamp | None:
    """A point in time; None stays absent."""
    if time is None:
        return None
    since = time - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def time_from_proto(message: Timestamp, *, field: str) -> datetime:
    """A point in time, truncated to microseconds. Raises InvalidArgument outside of the years 1 to 9999."""
    if 0 <= message.nanos < _NANOS:
        with contextlib.suppress(ValueError, OverflowError):
            return message.ToDatetime(tzinfo=UTC)
    raise InvalidArgument(FieldViolation(field, "is not a time between the years 1 and 9999"))


def duration_from_proto(message: Duration, *, field: str) -> timedelta:
    """A duration that is not negative, truncated to microseconds. Raises InvalidArgument for invalid nanos."""
    if not 0 <= message.nanos < _NANOS:
        raise InvalidArgument(FieldViolation(field, "is not a duration"))
    return message.ToTimedelta()


def uuid_from_proto(text: str) -> UUID | None:
    """An id, or None if it is empty. Validation has checked its form."""
    return UUID(text) if text else None


def id_from_proto(text: str) -> str:
    """An id as it is stored; empty stays empty. Validation has checked its form."""
    return str(UUID(text)) if text else ""


def optional_time_from_proto(message: Message, field: str, *, within: str = "") -> datetime | None:
    """The point in time in a *field* of *message*, or None if it is absent. Raises InvalidArgument."""
    return time_from_proto(getattr(message, field), field=f"{within}{field}") if message.HasField(field) else None


def usage_to_proto(usage: Usage) -> note_pb2.Usage:
    """How much of a budget is used."""
    return note_pb2.Usage(
        tier=note_pb2.Tier.ValueType(usage.tier),
        used_chars=usage.used_chars,
        limit_chars=usage.limit_chars,
        percent=usage.percent,
    )
