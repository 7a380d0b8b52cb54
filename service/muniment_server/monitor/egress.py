"""The egress filter: no message is sent that has a label above its receiver.

It is the last guard. It fires only if another guard is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from muniment_server.domain.classification import Classification
from muniment_server.monitor.policy import is_level, names_level

_LEVELS = frozenset(map(int, Classification))
_MANDATORY = "classification"
"""A field of this name is the label of an item or of a whole response. It is never absent."""


def may_leave(message: Message, limit: Classification) -> bool:
    """Whether every label in *message* can flow to *limit*, and no item lacks its label."""
    return all(_passes(field, value, limit) for field, value in _labels(message))


def _passes(field: str, value: int, limit: Classification) -> bool:
    if value == 0:
        return field != _MANDATORY
    return value in _LEVELS and Classification(value).can_flow_to(limit)


def _labels(message: Message) -> Iterator[tuple[str, int]]:
    for name in _plan(message.DESCRIPTOR)[0]:
        yield name, getattr(message, name)
    for field in _plan(message.DESCRIPTOR)[1]:
        for child in _children(message, field):
            yield from _labels(child)


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[str, ...], tuple[FieldDescriptor, ...]]:
    """The fields that are labels, and the fields that may contain labels."""
    return (
        tuple(field.name for field in descriptor.fields if is_level(field)),
        tuple(
            field for field in descriptor.fields if field.message_type is not None and names_level(field.message_type)
        ),
    )


def _children(message: Message, field: FieldDescriptor) -> Iterator[Any]:
    if field.is_repeated:
        yield from getattr(message, field.name)
    elif message.HasField(field.name):
        yield getattr(message, field.name)
