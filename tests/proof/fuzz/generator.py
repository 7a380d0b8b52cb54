"""Requests by chance: every field of the contract absent, empty, at its limits and beyond, and bytes that are none."""

from __future__ import annotations

import math
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from tests.proof.fuzz.rules import is_required
from tests.proof.fuzz.values import (
    NANOS,
    SECONDS,
    hostile_numbers,
    hostile_texts,
    plain_text,
    sizes_of,
)
from tests.proof.fuzz.wire import Field, Payload, Tree, WireType, encode, varint

_SAME = {
    "owner_agent_id": "agent_id",
    "agent_ids": "agent_id",
    "next_page_token": "page_token",
    "if_none_match": "etag",
    "tag": "tags",
    "old": "content",
    "name": "key",
    "item_id": "passage_id",
}
"""Names of fields that have the values of another."""
_KEPT = 12
_DEEP = 200


class Known:
    """What the server has answered, by the name of the field, so that requests name what exists."""

    def __init__(self) -> None:
        self._values: dict[str, list[bytes]] = defaultdict(list)
        self._present: dict[str, list[bytes]] = defaultdict(list)

    def add(self, name: str, value: str) -> None:
        """Keep a value, and forget an old one."""
        values = self._values[_SAME.get(name, name)]
        if value and len(value) < 4096 and value.encode() not in values:
            values[:] = [*values[-_KEPT + 1 :], value.encode()]

    def begin(self, **names: list[str]) -> None:
        """Say what exists from now on, by the name of the field. Most requests name that."""
        self._present = defaultdict(list, {name: [each.encode() for each in those] for name, those in names.items()})

    def read(self, message: Message) -> None:
        """Keep the texts of an answer, at any depth."""
        for field, value in message.ListFields():
            for each in list(value)[:4] if field.is_repeated else [value]:
                if isinstance(each, Message):
                    self.read(each)
                elif isinstance(each, str):
                    self.add(field.name, each)

    def some(self, name: str, dice: Random) -> bytes:
        """A value for a field of this name."""
        present = self._present[name] or self._present[_SAME.get(name, name)]
        values = present if dice.random() < 0.75 else self._values[_SAME.get(name, name)]
        return dice.choice(values or present or [b"plan"])


class Pen:
    """Writes requests. The same dice and the same knowledge make the same requests."""

    def __init__(self, dice: Random, known: Known) -> None:
        self._dice = dice
        self._known = known
        self._wildness = 0.0

    def payload(self, descriptor: Descriptor) -> Payload:
        """One message for a method that takes *descriptor*: most are sound, or wrong in one place."""
        self._wildness = self._dice.choice((0.0, 0.1, 0.1, 0.3, 1.0))
        tree = self.message(descriptor)
        return self._dice.choices((lambda: tree, lambda: self._damaged(tree), self._noise), (84, 12, 4))[0]()

    def message(self, descriptor: Descriptor) -> Tree:
        """The fields of a message."""
        if descriptor.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            return self._time(is_point=descriptor.name == "Timestamp")
        fields = [field for each in self._chosen(descriptor) for field in self._field(each)]
        if self._is_wild(0.1):
            self._dice.shuffle(fields)
        return tuple(fields)

    def _chosen(self, descriptor: Descriptor) -> Iterator[FieldDescriptor]:
        """The fields that are present. Of a choice it is mostly one."""
        for field in descriptor.fields:
            is_choice = field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
            if not is_choice and self._dice.random() < self._presence(field):
                yield field
        for choice in descriptor.oneofs:
            if len(choice.fields) > 1:
                yield from self._dice.sample(list(choice.fields), self._dice.randrange(3) if self._is_wild() else 1)

    def _presence(self, field: FieldDescriptor) -> float:
        return 0.6 if self._is_wild() else 0.95 if is_required(field) else 0.15 if field.name == "page_token" else 0.3

    def _field(self, field: FieldDescriptor) -> Iterator[Field]:
        count = 1
        if field.is_repeated:
            count = self._dice.choice(sizes_of(field)) if self._is_wild(0.5) else self._dice.randrange(1, 4)
        elif self._is_wild(0.05):
            count = 2
        for _ in range(count):
            yield self._disguised(Field(field.number, *self._value(field)))

    def _value(self, field: FieldDescriptor) -> tuple[WireType, int | bytes | Tree]:
        if field.message_type is not None:
            return WireType.LENGTH, self.message(field.message_type)
        if field.type == FieldDescriptor.TYPE_STRING:
            return WireType.LENGTH, self._text(field)
        if field.type == FieldDescriptor.TYPE_DOUBLE:
            return WireType.FIXED64, struct.unpack("<Q", struct.pack("<d", self._share()))[0]
        return WireType.VARINT, self._number(field)

    def _text(self, field: FieldDescriptor) -> bytes:
        if self._is_wild():
            return self._dice.choice(hostile_texts(field, self._dice))()
        if field.name == "name":
            return self._known.some(self._dice.choice(("key", "key", "key", "label", "note_id")), self._dice)
        if field.name == "language":
            return self._dice.choice((b"en", b"ta", b"zh-Hant"))
        if field.name in ("content", "old", "new", "query", "reason", "author", "display_name"):
            return plain_text(self._dice)
        return self._known.some(field.name, self._dice)

    def _number(self, field: FieldDescriptor) -> int:
        if self._is_wild():
            return self._dice.choice(hostile_numbers(field))
        if field.enum_type is not None:
            numbers = [value.number for value in field.enum_type.values if value.number]
            return self._dice.choice((numbers[0], self._dice.choice(numbers)))
        return self._dice.randrange(2 if field.type == FieldDescriptor.TYPE_BOOL else 6)

    def _share(self) -> float:
        return self._dice.choice((-1.0, 1.5, math.nan, math.inf, 5e-324) if self._is_wild() else (0.0, 0.3, 1.0))

    def _time(self, *, is_point: bool) -> Tree:
        seconds, nanos = int(time.time()) if is_point else 0, 0
        seconds += self._dice.choice((1, 3600, 86_400))
        if self._is_wild():
            seconds, nanos = self._dice.choice(SECONDS), self._dice.choice(NANOS)
        return Field(1, WireType.VARINT, seconds), Field(2, WireType.VARINT, nanos)

    def _disguised(self, field: Field) -> Field:
        """Sometimes the field with another wire type, or another number."""
        if not self._is_wild(0.03):
            return field
        number = self._dice.choice((0, 1, field.number + 1, 99, 2**29 - 1))
        other: list[Field] = [
            Field(number, field.wire, field.value),
            Field(field.number, WireType.VARINT, self._dice.getrandbits(64)),
            Field(field.number, WireType.FIXED64, self._dice.getrandbits(64)),
            Field(field.number, WireType.FIXED32, self._dice.getrandbits(32)),
            Field(field.number, WireType.LENGTH, self._dice.randbytes(9)),
            Field(field.number, WireType.GROUP, (Field(1, WireType.VARINT, 1),)),
        ]
        return self._dice.choice(other)

    def _damaged(self, tree: Tree) -> bytes:
        """A message that was cut off, changed or repeated."""
        whole = encode(tree) or b"\x0a\x01a"
        place = self._dice.randrange(len(whole))
        ways: list[Callable[[], bytes]] = [
            lambda: whole[:place],
            lambda: whole[place:],
            lambda: whole[:place] + bytes([self._dice.randrange(256)]) + whole[place + 1 :],
            lambda: whole[:place] + self._dice.randbytes(3) + whole[place:],
            lambda: whole * 2,
            lambda: whole + b"\x0a" + varint(2**31 - 1) + b"a",
            lambda: whole + b"\x80" * 11,
        ]
        return self._dice.choice(ways)()

    def _noise(self) -> bytes:
        """Bytes that no message is: of any kind, or nested too deep."""
        number = self._dice.randrange(1, 9)
        ways: list[Callable[[], bytes]] = [
            lambda: self._dice.randbytes(self._dice.choice((1, 2, 7, 100, 4000))),
            lambda: self._nested(number, WireType.LENGTH),
            lambda: self._nested(number, WireType.GROUP),
            lambda: varint(number << 3 | WireType.GROUP) * 100_000,
            lambda: varint(number << 3 | WireType.LENGTH) + b"\0",
            lambda: (varint(number << 3 | WireType.LENGTH) + b"\0") * 20_000,
            lambda: b"\0" * 100,
            lambda: b"\xff" * 100,
            lambda: b"\x0a" + varint(1_100_000) + b"a" * 1_100_000,
        ]
        return self._dice.choice(ways)()

    def _nested(self, number: int, wire: WireType) -> bytes:
        tree: Tree = ()
        for _ in range(_DEEP):
            tree = (Field(number, wire, tree),)
        return encode(tree)

    def _is_wild(self, share: float = 1.0) -> bool:
        return self._dice.random() < self._wildness * share
