"""Conversions between the contract and the domain that every noun needs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1 import classification_pb2, note_pb2, version_pb2
from muniment_server.domain import text
from muniment_server.domain.budgets import Usage
from muniment_server.domain.classification import Classification, Integrity, Label, join
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.items import ItemKind, NewerBelow

_NANOS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAME_OF: Mapping[ItemKind, Callable[[str], str]] = {
    ItemKind.MEMORY: text.key,
    ItemKind.NOTE: lambda name: str(UUID(name)),
    ItemKind.BLOCK: text.label,
    ItemKind.PASSAGE: lambda name: str(UUID(name)),
}
"""What the stored name of an item is, from the one that a host or an operator gives."""


def level_to_proto(level: Classification | None) -> classification_pb2.Classification.ValueType:
    """The same number in the contract; None is UNSPECIFIED."""
    return classification_pb2.Classification.ValueType(level or 0)


def integrity_to_proto(integrity: Integrity) -> classification_pb2.Integrity.ValueType:
    """The same number in the contract."""
    return classification_pb2.Integrity.ValueType(integrity)


def revealed_to_proto(label: Label | None) -> dict[str, Any]:
    """The fields of a response that say which version is revealed; None leaves them unset."""
    if label is None:
        return {}
    return {"revealed": level_to_proto(label.level), "revealed_integrity": integrity_to_proto(label.integrity)}


def label_to_proto(label: Label) -> dict[str, Any]:
    """The fields of a message that are its label."""
    return {"classification": level_to_proto(label.level), "integrity": integrity_to_proto(label.integrity)}


def joined(labels: Iterable[Label]) -> classification_pb2.Classification.ValueType:
    """The level of a response: the join of the levels of what it contains. The monitor states its integrity."""
    return level_to_proto(join(labels).level)


def time_to_proto(time: datetime | None) -> Timestamp | None:
    """A point in time; None stays absent."""
    if time is None:
        return None
    since = time - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def newer_to_proto(newer: NewerBelow | None) -> version_pb2.NewerBelow | None:
    """A newer version below; None stays absent."""
    if newer is None:
        return None
    return version_pb2.NewerBelow(**label_to_proto(newer.label), update_time=time_to_proto(newer.update_time))


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


def id_from_proto(given: str) -> str:
    """An id as it is stored; empty stays empty. Validation has checked its form."""
    return str(UUID(given)) if given else ""


def name_from_proto(name: str, kind: ItemKind) -> str:
    """The name of an item of a *kind* as it is stored, from the field `name`. Raises InvalidArgument."""
    try:
        return NAME_OF[kind](name)
    except InvalidArgument as error:
        raise InvalidArgument(FieldViolation("name", error.violations[0].rule)) from None
    except ValueError:
        raise InvalidArgument(
            FieldViolation("name", f"must be a UUID, as the id of every {kind.name.lower()}")
        ) from None


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
