"""A filter that is executed: LangGraph, CVE-2025-67644, where the name of a filter became part of a statement.

Promised: the names of filters are fields of the contract, and every value is compared and never executed: one that is
syntax elsewhere selects what is equal to it, or is refused.
"""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor

from muniment_server.transport.server import SERVICES
from tests.proof.fuzz.wire import Field, WireType, encode
from tests.support.answers import PUBLIC
from tests.support.methods import FOR_HOSTS

# 77, because a number up to 31 would also match the day of an item.
ATTACKS = [
    "x') OR '77'='77", "' OR 77=77 --", "'; DROP TABLE muniment_public.item; --", "%", "_", "*", "pl%", "{pl}", "$77",
    "%(tenant)s", "@> '{}'", "\\' OR TRUE --", "pl' | 'other", "${jndi:x}", "{\"$ne\": null}", "a:* | b:*", ".*",
]  # fmt: skip
FILTERED = [
    (method.name, field)
    for service in SERVICES
    for method in service.methods
    if method.name.startswith(("List", "Search", "Get"))
    for field in method.input_type.fields
    if field.type == FieldDescriptor.TYPE_STRING
]
REFUSED_OR_NOTHING = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}


@pytest.mark.parametrize(("method", "field"), FILTERED, ids=[f"{name}.{field.name}" for name, field in FILTERED])
def test_no_value_of_a_filter_is_executed(host, session, method, field):
    """Each attack as the value of each text by which a read selects, the others being sound."""
    own = session(PUBLIC)
    own.save_memory(key="plan", content="ship", tags=["work"])
    own.store_passage(content="ship", tags=["work"], thread="t", author="Ahab")
    own.add_note(content="ship")
    own.update_block(label="plan", content="ship")
    sound = {"query": "ship", "agent_id": "alice", "owner_agent_id": "alice", "label": "plan", "key": "plan"}
    caller = host if method in FOR_HOSTS else own
    required = {name: value for name, value in sound.items() if name in field.containing_type.fields_by_name}
    required.pop("owner_agent_id" if method == "GetBlock" else "", None)

    answers = {}
    for attack in ATTACKS:
        value: object = [attack] if field.is_repeated else attack
        outcome = caller.observe(method, **{**required, field.name: value})
        answers[attack] = outcome.code if outcome.code in REFUSED_OR_NOTHING else outcome.response.count(b"ship")

    assert {attack: got for attack, got in answers.items() if got not in {*REFUSED_OR_NOTHING, 0}} == {}


@pytest.mark.parametrize("name", ["x') OR '1'='1", "tenant", "agent", "level"])
def test_no_name_of_a_filter_reaches_a_statement(session, name):
    """What the contract does not know is dropped, so a filter of any other name selects what no filter selects."""
    own, other = session(PUBLIC), session(PUBLIC, agent_id="bob")
    own.save_memory(key="plan", content="ship")
    other.save_memory(key="secret", content="ship")
    unknown = encode((Field(900, WireType.LENGTH, name.encode()), Field(901, WireType.VARINT, 4)))

    assert [memory.key for memory in own.send("ListMemories", unknown).memories] == ["plan"]
