"""The contract as its descriptors say it: what every method and message keeps to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from muniment.v1 import classification_pb2, policy_pb2
from muniment_server.monitor import policy
from muniment_server.monitor.validation import load_pool
from muniment_server.transport.server import SERVICES
from tests.support.each import for_each

PROTO = Path(__file__).parents[3] / "proto" / "muniment" / "v1"
METHODS = [method for service in SERVICES for method in service.methods]
FOR_SESSIONS = [method for method in METHODS if policy_pb2.PRINCIPAL_SESSION in policy._declared(method).principals]
NAMES = [method.name for method in METHODS]

_RULES = b"\xba\x48"
"""How the option `buf.validate.field` begins on the wire."""

SECRET_FIELDS = {
    "key", "content", "tags", "tag", "query", "snippet", "token", "preview", "label", "thread", "author", "text",
    "old", "new",
}  # fmt: skip
"""What a log must not show when somebody prints a message."""


def messages():
    """Every message of ours, from the files that the services use."""
    seen: dict[str, Descriptor] = {}
    files = [service.file for service in SERVICES]
    for file in files:
        for message in file.message_types_by_name.values():
            _collect(message, seen)
    return [message for name, message in sorted(seen.items()) if name.startswith("muniment.v1.")]


def _collect(message, seen):
    if message.full_name in seen:
        return
    seen[message.full_name] = message
    for field in message.fields:
        if field.message_type is not None:
            _collect(field.message_type, seen)


def levels_in(message, path=(), seen=()):
    """The paths of all fields of type Classification in *message*, at any depth."""
    for field in message.fields:
        here = (*path, field.name)
        if field.enum_type is not None and field.enum_type == classification_pb2.Classification.DESCRIPTOR:
            yield ".".join(here)
        if field.message_type is not None and field.message_type.full_name not in seen:
            yield from levels_in(field.message_type, here, (*seen, message.full_name))


@for_each("method", METHODS)
def test_every_method_says_whether_it_may_be_repeated(method):
    assert method.GetOptions().HasField("idempotency_level")


@for_each("method", METHODS)
def test_every_method_has_a_policy(method):
    assert list(policy.policies([method.containing_service])) != []


@for_each("method", METHODS)
def test_every_method_has_a_request_and_a_response_named_after_it(method):
    found = (method.input_type.full_name, method.output_type.full_name)

    assert found == (f"muniment.v1.{method.name}Request", f"muniment.v1.{method.name}Response")


def test_no_request_or_response_serves_two_methods():
    used = Counter(each.full_name for method in METHODS for each in (method.input_type, method.output_type))

    assert [name for name, times in used.items() if times > 1] == []


def test_no_two_methods_have_the_same_name():
    """The audit names a method without its service."""
    assert [name for name, times in Counter(NAMES).items() if times > 1] == []


@for_each("method", FOR_SESSIONS)
def test_c47_no_request_of_a_session_names_a_level(method):
    assert list(levels_in(method.input_type)) == []


def test_a_level_at_any_depth_is_found():
    """The walk above can fail: it finds the levels in a response."""
    search = next(method for method in METHODS if method.name == "SearchMemories")

    assert set(levels_in(search.output_type)) == {
        "results.memory.classification",
        "results.memory.newer_below.classification",
        "classification",
    }


def test_no_request_for_items_names_an_agent():
    """Whose items it is about comes from the session's row only."""
    for service in SERVICES:
        for method in service.methods:
            if policy._declared(method).flow != policy_pb2.FLOW_CONTROL:
                assert "agent_id" not in {field.name for field in method.input_type.fields}, method.name


def test_reads_have_no_side_effects_and_writes_have():
    """What retries and caches rely on."""
    expected = {1: {MethodOptions.NO_SIDE_EFFECTS}, 2: {MethodOptions.IDEMPOTENT, MethodOptions.IDEMPOTENCY_UNKNOWN}}
    wrong = [
        method.name
        for method in METHODS
        if method.GetOptions().idempotency_level not in expected.get(policy._declared(method).flow, {0, 1, 2})
    ]

    assert wrong == []


def test_every_response_with_several_items_carries_their_join():
    missing = [
        method.name
        for method in METHODS
        if any(field.is_repeated and "classification" in _leaves(field) for field in method.output_type.fields)
        and "classification" not in {field.name for field in method.output_type.fields}
        and policy._declared(method).flow != policy_pb2.FLOW_CONTROL
    ]

    assert missing == []


def _leaves(field):
    return {path.rsplit(".", 1)[-1] for path in levels_in(field.message_type)} if field.message_type else set()


def test_every_list_is_paged_alike():
    for method in METHODS:
        if method.name.startswith("List") and "page_token" in method.input_type.fields_by_name:
            assert "page_size" in method.input_type.fields_by_name, method.name
            assert "next_page_token" in method.output_type.fields_by_name, method.name


def test_enums_begin_with_unspecified():
    """But for integrity: what does not say that it is trusted is not."""
    enums = {
        enum.full_name: enum for message in messages() for enum in (field.enum_type for field in message.fields) if enum
    }

    others = {name: enum.values_by_number[0].name for name, enum in enums.items()}
    assert {name: zero for name, zero in others.items() if not zero.endswith("_UNSPECIFIED")} == {
        "muniment.v1.Integrity": "INTEGRITY_UNTRUSTED"
    }


@for_each("message", messages())
def test_c60_what_must_not_be_logged_is_marked(message):
    """`debug_redact`: printing the message does not print the field."""
    unmarked = [
        field.name for field in message.fields if field.name in SECRET_FIELDS and not field.GetOptions().debug_redact
    ]

    assert unmarked == []


def test_times_are_timestamps():
    wrong = [
        f"{message.name}.{field.name}"
        for message in messages()
        for field in message.fields
        if field.name.endswith("_time")
        and (field.message_type is None or field.message_type.full_name != "google.protobuf.Timestamp")
    ]

    assert wrong == []


def test_the_rules_that_are_enforced_are_those_of_the_contract():
    """The pool with the rules has the same messages and fields as the classes that are served."""
    pool = load_pool()
    for message in messages():
        with_rules = pool.FindMessageTypeByName(message.full_name)
        assert [(field.number, field.name, field.type) for field in with_rules.fields] == [
            (field.number, field.name, field.type) for field in message.fields
        ], message.full_name


def texts_in(message, path):
    """The paths of all fields in *message* that are text, at any depth, and their descriptors."""
    for field in message.fields:
        if field.cpp_type == field.CPPTYPE_STRING:
            yield f"{path}.{field.name}", field
        elif field.message_type is not None:
            yield from texts_in(field.message_type, f"{path}.{field.name}")


def test_every_text_of_a_request_is_bounded():
    """A request field that is text has a rule; nothing is as long as the transport lets it be."""
    pool = load_pool()
    found = {
        path: field
        for method in METHODS
        for path, field in texts_in(pool.FindMessageTypeByName(method.input_type.full_name), method.name)
    }

    assert {"EditNotes.edits.add.content", "ImportPassages.passage.thread"} <= found.keys()
    assert [path for path, field in found.items() if _RULES not in field.GetOptions().SerializeToString()] == []


def test_every_repeated_field_of_a_request_is_bounded():
    """Also in messages inside messages: a thousand edits are a thousand checks."""
    pool = load_pool()
    requests = [pool.FindMessageTypeByName(method.input_type.full_name) for method in METHODS]
    inner = [field.message_type for request in requests for field in request.fields if field.message_type]
    unbounded = [
        f"{message.name}.{field.name}"
        for message in (*requests, *inner)
        for field in message.fields
        if field.is_repeated and _RULES not in field.GetOptions().SerializeToString()
    ]

    assert unbounded == []


def test_two_files_for_each_noun():
    """`memory.proto` holds the message, `memory_service.proto` the service with its requests and responses."""
    services = {path.stem.removesuffix("_service") for path in PROTO.glob("*_service.proto")}
    found = {path.stem for path in PROTO.glob("*.proto")}

    assert services <= found


def test_every_service_in_the_folder_is_served():
    declared = {
        name
        for path in PROTO.glob("*_service.proto")
        for name in re.findall(r"^service (\w+) ", path.read_text("utf-8"), re.MULTILINE)
    }

    assert declared == {service.name for service in SERVICES}
