"""Plays every row of tests/rpcs.py on a server: a row that is wrong or missing would blind all tests that use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from muniment.v1.memory_pb2 import Memory
from muniment.v1.memory_service_pb2 import GetMemoryResponse
from muniment_server.domain.classification import Classification, Label
from muniment_server.monitor import egress
from muniment_server.transport.server import SERVICES
from tests import rpcs
from tests.rpcs import RPCS, Rpc, World, filled
from tests.support.canaries import new_canary
from tests.support.invariants import broken_invariants
from tests.support.methods import METHODS, POLICIES
from tests.support.services import Service

_DESCRIPTORS = {method.name: method for service in SERVICES for method in service.methods}
_TABLES = {
    "item": "muniment_public.item",
    "agent": "vault.agent",
    "session": "vault.session",
    "conversation": "vault.conversation",
    "shared_block": "vault.shared_block",
    "block_link": "vault.block_link",
    "release": "vault.release",
    "release_approval": "vault.release_approval",
}
_NO_TEXT = {"etag", "page_token", "if_none_match", "language", "item_id", "release_id", "content_sha256"}
"""Fields with a form of their own."""
_LEFT_OUT = {
    ("EraseItems", "tag"),  # instead of the name
    ("DeletePassages", "tag"),  # the thread is enough
    ("GetBlock", "owner_agent_id"),  # the agent itself
    ("EditBlock", "insert"),
    ("EditBlock", "replace"),
    ("EditNotes", "update"),
    ("EditNotes", "delete"),
}
"""Fields that may not, or need not, stand beside others of the request."""


def _wrong_answer(rpc: str, row: Rpc) -> Iterator[str]:
    """What is wrong with the answer of *row*."""
    wanted, answered = _DESCRIPTORS[rpc].output_type.full_name, row.answer.DESCRIPTOR.full_name
    if answered != wanted:
        yield f"{rpc}: its answer should be a {wanted}, and is a {answered}"
    elif not egress.may_leave(row.answer, Label.RESTRICTED):
        yield f"{rpc}: its answer has no classification where one belongs"


def _without_text(rpc: str, message: Message, world: World) -> Iterator[str]:
    """The fields of *message* that take text and have none of the world's."""
    for field in message.DESCRIPTOR.fields:
        values: Any = getattr(message, field.name)
        if field.name in _NO_TEXT or (rpc, field.name) in _LEFT_OUT:
            continue
        if field.type == field.TYPE_STRING:
            texts = list(values) if field.is_repeated else [values]
            if not texts or not all(any(name in text for name in (*world.names(), world.session)) for text in texts):
                yield field.name
        elif field.message_type is not None and field.message_type.file.package == "muniment.v1":
            for each in values if field.is_repeated else [values]:
                if field.is_repeated or message.HasField(field.name) or field.containing_oneof is None:
                    yield from _without_text(rpc, each, world)


def _changed(service: Service, before: Mapping[str, Any]) -> set[str]:
    return {name for name, rows in _rows(service).items() if rows != before[name]}


def _rows(service: Service) -> dict[str, Any]:
    with service.database.as_owner() as owner:
        return {
            name: owner.execute(f"SELECT array_agg(t::text ORDER BY t::text) FROM {table} AS t".encode()).fetchone()
            for name, table in _TABLES.items()
        }


def _findings(service: Service, rpc: str, row: Rpc) -> Iterator[str]:
    """What is wrong with *row*, played in a world of its own."""
    host = service.host()
    session, world = filled(host, Classification.PUBLIC, word=new_canary(), desk=service.host(name="desk"))
    caller = host if POLICIES[rpc].for_hosts else session
    for refused in row.refused(world):
        if (outcome := rpcs.observe(caller, rpc, refused)).code is not grpc.StatusCode.INVALID_ARGUMENT:
            yield f"{rpc}: {refused} is not refused for its form: {outcome}"
    fields = row.request(world)
    request = GetMessageClass(_DESCRIPTORS[rpc].input_type)(**fields)
    for field in _without_text(rpc, request, world):
        yield f"{rpc}: its request has no text in {field}"
    before = _rows(service)
    outcome = rpcs.observe(caller, rpc, fields)
    if outcome.code is not grpc.StatusCode.OK:
        yield f"{rpc}: its request is refused: {outcome}"
    changed = _changed(service, before)
    is_as_said = row.changes in changed if row.changes else not changed
    if not is_as_said:
        yield f"{rpc}: it should change {row.changes or 'nothing'}, and changes {changed}"


def test_every_rpc_has_a_row_and_a_good_answer() -> None:
    differing = sorted(set(RPCS) ^ set(METHODS))
    assert differing == [], f"tests/rpcs.py needs a row for each RPC of the contract, and no other: {differing}"
    assert [finding for rpc, row in RPCS.items() for finding in _wrong_answer(rpc, row)] == []


def test_every_request_succeeds_has_text_in_every_field_and_changes_what_the_row_says(service: Service) -> None:
    """And what is out of form is refused, and the audit has a row for each change of an item."""
    assert [finding for rpc, row in RPCS.items() for finding in _findings(service, rpc, row)] == []
    erased = "without its effect"  # what EraseItems leaves of the item in the audit
    assert [what for what in broken_invariants(service.database) if erased not in what] == []


def test_a_row_that_is_missing_is_asked_for_by_its_file() -> None:
    with pytest.raises(KeyError, match=r"NoSuchRpc has no row: add one to tests/rpcs\.py"):
        _ = RPCS["NoSuchRpc"]


_WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "of another RPC": ("GetMemory", {"answer": RPCS["GetBlock"].answer}),
    "without its label": ("GetMemory", {"answer": GetMemoryResponse(memory=Memory(key="tea"))}),
    "without a text": ("SearchMemories", {"request": lambda w: {"query": w.word, "key_prefix": w.word}}),
    "refused": ("GetMemory", {"request": lambda w: {"key": w.new}}),
    "without effect": ("DeleteMemories", {"request": lambda w: {"tag": w.text}}),
    "with an effect": ("SaveMemory", {"changes": ""}),
    "with another effect": ("CreateAgent", {"changes": "session"}),
    "with a refused request that is good": ("GetMemory", {"refused": lambda w: ({"key": w.word},)}),
    "without what it leaves": ("RenameMemory", {"leaves": None}),
    "that leaves another kind": ("AddNote", {"leaves": RPCS["SaveMemory"].leaves}),
    "that leaves another effect": ("DeletePassages", {"leaves": RPCS["StorePassage"].leaves}),
}


@pytest.mark.parametrize("wrong", _WRONG)
def test_a_row_that_is_wrong_is_found(service: Service, wrong: str) -> None:
    rpc, columns = _WRONG[wrong]
    row = replace(RPCS[rpc], **columns)

    with mock.patch.dict(RPCS, {rpc: row}):
        findings = [*_wrong_answer(rpc, row), *_findings(service, rpc, row)]
        assert findings or broken_invariants(service.database)
