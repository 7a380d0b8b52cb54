"""Messages as they are on the wire, as trees that can be wrong in every way in which bytes can be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias


class WireType(IntEnum):
    """How a field is encoded, as the encoding of protocol buffers numbers it."""

    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    GROUP = 3
    FIXED32 = 5


_END_GROUP = 4


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a number, bytes, or a message inside it."""

    number: int
    wire: WireType
    value: int | bytes | tuple[Field, ...]


Tree: TypeAlias = tuple[Field, ...]
Payload: TypeAlias = "Tree | bytes"
"""One message: its fields, or bytes that need not be a message."""


def varint(number: int) -> bytes:
    """A number as it is on the wire. A negative one takes ten bytes."""
    number &= 2**64 - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def encode(payload: Payload) -> bytes:
    """The bytes of a message."""
    return payload if isinstance(payload, bytes) else b"".join(map(_encoded, payload))


def _encoded(field: Field) -> bytes:
    tag = varint(field.number << 3 | field.wire)
    if isinstance(field.value, int):
        return tag + _number(field.value, field.wire)
    content = encode(field.value)
    if field.wire is WireType.GROUP:
        return tag + content + varint(field.number << 3 | _END_GROUP)
    return tag + varint(len(content)) + content


def _number(value: int, wire: WireType) -> bytes:
    if wire is WireType.VARINT:
        return varint(value)
    size = 8 if wire is WireType.FIXED64 else 4
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
