"""Values: levels flow upward, and no repr leaks."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

import muniment
from muniment import Classification
from muniment.v1 import audit_service_pb2, memory_service_pb2
from muniment.v1.audit_pb2 import ItemKind
from muniment.v1.classification_pb2 import CLASSIFICATION_PUBLIC
from muniment.v1.classification_pb2 import Classification as ContractLevel
from tests.clients.python.scripted import (
    ANSWERS,
    HOST_KEY,
    MEMORY,
    SESSION_ID,
    TOKEN,
)

SECRETS = ("tea", "Assam", "taste", "next-page", TOKEN, HOST_KEY)


def test_levels_are_those_of_the_contract():
    contract = {name.removeprefix("CLASSIFICATION_"): number for name, number in ContractLevel.items() if number}

    assert contract == {level.name: level.value for level in Classification}


def test_kinds_are_those_of_the_contract():
    contract = {name.removeprefix("ITEM_KIND_"): number for name, number in ItemKind.items() if number}

    assert contract == {kind.name: kind.value for kind in muniment.ItemKind}


@pytest.mark.parametrize("source", Classification)
@pytest.mark.parametrize("target", Classification)
def test_data_flows_upward_only(source, target):
    assert (source.value <= target.value) == source.can_flow_to(target)


def shown(server, host, session):
    """Everything that a client hands out."""
    server.script(
        "ListMemories",
        memory_service_pb2.ListMemoriesResponse(
            memories=[MEMORY],
            classification=CLASSIFICATION_PUBLIC,
            next_page_token="next-page",
        ),
    )
    return [
        host,
        session,
        host.open_session("ada", Classification.PUBLIC),
        host.session(TOKEN),
        session.get_memory("tea"),
        session.list_memories_page(),
        session.search_memories("tea"),
        *session.search_memories("tea"),
        session.get_session(),
        muniment.settings.Settings("here", token=TOKEN),
        muniment.settings.Settings("here", host_key=HOST_KEY),
        muniment.TLS(certificate=TOKEN.encode(), key=HOST_KEY.encode()),
    ]


def test_no_repr_leaks(server, host, session):
    for value in shown(server, host, session):
        for text in (repr(value), str(value), f"{value}"):
            assert not [secret for secret in SECRETS if secret in text]


def test_a_session_is_recognised_by_its_id(host, session):
    assert SESSION_ID in repr(host.open_session("ada", Classification.PUBLIC))
    assert repr(session) == "<SessionClient by token>"


def test_values_are_frozen(session):
    memory = session.get_memory("tea")

    with pytest.raises(FrozenInstanceError):
        memory.content = "Darjeeling"


def test_an_unknown_level_is_never_taken_for_a_known_one(server, session):
    """Fail closed: a label that this client cannot compare must not pass for none."""
    for number in (0, 5):
        answer = memory_service_pb2.GetMemoryResponse()
        answer.CopyFrom(ANSWERS["GetMemory"])
        answer.memory.classification = number  # type: ignore[assignment]  # a number of a later contract
        server.script("GetMemory", answer)

        with pytest.raises(ValueError, match="Classification"):
            session.get_memory("tea")


def test_an_unknown_kind_does_not_hide_an_audit_event(server, host):
    answer = audit_service_pb2.ListAuditEventsResponse()
    answer.CopyFrom(ANSWERS["ListAuditEvents"])
    answer.audit_events[0].kind = 99  # type: ignore[assignment]  # a number of a later contract
    server.script("ListAuditEvents", answer)

    (event,) = host.list_audit_events()

    assert event.kind is None
