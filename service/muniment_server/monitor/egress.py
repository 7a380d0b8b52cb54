"""The egress filter: no message is sent whose label cannot flow to its receiver.

It is the last guard. It fires only if another guard is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.monitor.policy import is_integrity, is_level, names_label

_LEVELS = {int(level): level for level in Classification}
_MANDATORY = "classification"
"""A field of this name is the level of an item or of a whole response. It is never absent."""
_REVEALED = {"revealed_integrity": "revealed"}
"""An integrity that is absent if that level is: its number is then that of UNTRUSTED, and states nothing."""


def may_leave(message: Message, limit: Label) -> bool:
    """Whether every label in *message* can flow to *limit*, and no item lacks its label."""
    levels, integrities, parts = _plan(message.DESCRIPTOR)
    return (
        all(_level_passes(name, getattr(message, name), limit) for name in levels)
        and not (
            limit.is_trusted
            and any(getattr(message, name) != Integrity.TRUSTED for name in _stated(message, integrities))
        )
        and all(may_leave(child, limit) for field in parts for child in _children(message, field))
    )


def says_integrity(response: Message) -> bool:
    """Whether *response* has an integrity of its own."""
    _, integrities, _ = _plan(response.DESCRIPTOR)
    return "integrity" in integrities


def _level_passes(field: str, value: int, limit: Label) -> bool:
    if value == 0:
        return field != _MANDATORY
    return value in _LEVELS and _LEVELS[value].can_flow_to(limit.level)


def _stated(message: Message, integrities: Iterable[str]) -> Iterable[str]:
    """Those of the fields *integrities* that are not absent."""
    return (name for name in integrities if name not in _REVEALED or getattr(message, _REVEALED[name]))


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[str, ...], tuple[str, ...], tuple[FieldDescriptor, ...]]:
    """The fields that are levels, those that are integrities, and those that may contain either."""

    def named(is_such: Callable[[FieldDescriptor], bool]) -> tuple[str, ...]:
        return tuple(field.name for field in descriptor.fields if is_such(field))

    parts = (field for field in descriptor.fields if field.message_type is not None and names_label(field.message_type))
    return named(is_level), named(is_integrity), tuple(parts)


def _children(message: Message, field: FieldDescriptor) -> Iterable[Any]:
    if field.is_repeated:
        children: Iterable[Any] = getattr(message, field.name)
        return children
    return (getattr(message, field.name),) if message.HasField(field.name) else ()
