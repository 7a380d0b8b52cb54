"""The egress filter: no message is sent that has a label above its receiver.

It is the last guard. It fires only if another guard is broken.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from muniment_server.domain.classification import Classification
from muniment_server.monitor.policy import is_level, names_level

_LEVELS = {int(level): level for level in Classification}
_MANDATORY = "classification"
"""A field of this name is the label of an item or of a whole response. It is never absent."""


def may_leave(message: Message, limit: Classification) -> bool:
    """Whether every label in *message* can flow to *limit*, and no item lacks its label."""
    labels, parts = _plan(message.DESCRIPTOR)
    for name in labels:
        if not _passes(name, getattr(message, name), limit):
            return False
    return all(may_leave(child, limit) for field in parts for child in _children(message, field))


def _passes(field: str, value: int, limit: Classification) -> bool:
    if value == 0:
        return field != _MANDATORY
    return value in _LEVELS and _LEVELS[value].can_flow_to(limit)


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[str, ...], tuple[FieldDescriptor, ...]]:
    """The fields that are labels, and the fields that may contain labels."""
    return (
        tuple(field.name for field in descriptor.fields if is_level(field)),
        tuple(
            field for field in descriptor.fields if field.message_type is not None and names_level(field.message_type)
        ),
    )


def _children(message: Message, field: FieldDescriptor) -> Iterable[Any]:
    if field.is_repeated:
        children: Iterable[Any] = getattr(message, field.name)
        return children
    return (getattr(message, field.name),) if message.HasField(field.name) else ()
