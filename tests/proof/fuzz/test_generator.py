"""The generator reaches what it should: every field, every limit, and every way in which bytes can be no message."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from tests.proof.fuzz.generator import Known, Pen
from tests.proof.fuzz.rules import METHODS, entry_rules_of, fields_below, request_of
from tests.proof.fuzz.shrinking import shrunk
from tests.proof.fuzz.values import EXAMPLES, hostile_numbers, lengths_of, matches, sizes_of
from tests.proof.fuzz.wire import Field, WireType, encode

FIELDS = {field.full_name: field for method in METHODS for field in fields_below(request_of(method))}


def rules(name):
    return FIELDS[f"muniment.v1.{name}"]


def test_the_limits_of_the_contract_are_tried_and_one_beyond_each():
    key, reason = rules("SaveMemoryRequest.key"), rules("RaiseTaintRequest.reason")
    tags, budget = rules("SaveMemoryRequest.tags"), rules("MemorySettings.memory_char_limit")

    assert {0, 1, 2, 4095, 4096, 4097} <= set(lengths_of(entry_rules_of(key)))
    assert {199, 200, 201, 800, 804} <= set(lengths_of(entry_rules_of(reason)))
    assert {1023, 1024, 1025} <= set(lengths_of(entry_rules_of(tags)))
    assert {31, 32, 33} <= set(sizes_of(tags))
    assert {-1, 0, 999_999, 1_000_000, 1_000_001} <= set(hostile_numbers(budget))


def test_every_pattern_of_the_contract_has_examples_that_match():
    patterns = {entry_rules_of(field).string.pattern for field in FIELDS.values()} - {""}

    assert set(EXAMPLES) == patterns
    assert [text for pattern, texts in EXAMPLES.items() for text in texts if not matches(pattern, text)] == []


@pytest.mark.parametrize("method", METHODS)
def test_every_field_is_present_absent_and_wrong(method):
    """As the server would read it: 600 requests of each method."""
    descriptor = request_of(method)
    parse = GetMessageClass(descriptor).FromString
    pen = Pen(Random(1), Known())
    present: set[str] = set()
    not_messages = 0
    for _ in range(600):
        try:
            message = parse(encode(pen.payload(descriptor)))
        except DecodeError:
            not_messages += 1
            continue
        present |= {field.name for field, _ in message.ListFields()}

    assert present == {field.name for field in descriptor.fields}
    assert 20 < not_messages < 300


def test_fields_have_every_wire_type():
    """The wire type of the group's end, too: a parser must find it."""
    pen = Pen(Random(1), Known())
    trees = [pen.payload(request_of("SaveMemory")) for _ in range(3000)]
    fields = [field for tree in trees if not isinstance(tree, bytes) for field in tree]

    assert {field.wire for field in fields} == set(WireType)
    assert max(field.number for field in fields) == 2**29 - 1


def test_the_same_dice_make_the_same_requests():
    first, second = (Pen(Random("1 2"), Known()).payload(request_of("EditNotes")) for _ in range(2))

    assert first == second


def test_messages_are_encoded_as_protobuf_does():
    message: Any = GetMessageClass(request_of("StorePassage"))(content="x", tags=["a", "b"])
    message.event_time.seconds = -1
    tree = (
        Field(1, WireType.LENGTH, b"x"),
        Field(2, WireType.LENGTH, b"a"),
        Field(2, WireType.LENGTH, b"b"),
        Field(5, WireType.LENGTH, (Field(1, WireType.VARINT, -1),)),
    )

    assert encode(tree) == message.SerializeToString()
    assert FIELDS["muniment.v1.StorePassageRequest.tags"].type == FieldDescriptor.TYPE_STRING


def test_what_fails_is_made_small():
    tree = tuple(Field(number, WireType.LENGTH, b"some text \0 and more") for number in range(1, 9))

    smallest = shrunk([tree, tree], lambda payloads: any(b"\0" in encode(payload) for payload in payloads))

    assert smallest == [(Field(8, WireType.LENGTH, b"\0"),)] or len(encode(smallest[0])) == 3


def test_every_field_with_the_pattern_of_ids_is_one_that_the_server_checks_beyond_it():
    """A pattern cannot say NFC, nor which characters are assigned."""
    found = {
        (field.name, str(field.containing_type and field.containing_type.name).endswith("Request"))
        for method in METHODS
        for field in fields_below(request_of(method))
        if "~" in entry_rules_of(field).string.pattern
    }

    assert found == {("agent_id", True), ("owner_agent_id", True), ("conversation_id", True)}
