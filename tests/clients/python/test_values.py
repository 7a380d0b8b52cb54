"""Values: levels flow upward, and no repr leaks."""

from __future__ import annotations

import copy
import json
from dataclasses import FrozenInstanceError

import pytest

import muniment
from muniment import AddNote, BudgetEntry, Classification, NewPassage, UpdateNote
from muniment.v1 import audit_service_pb2, memory_service_pb2
from muniment.v1.audit_pb2 import ItemKind
from muniment.v1.classification_pb2 import CLASSIFICATION_PUBLIC
from muniment.v1.classification_pb2 import Classification as ContractLevel
from muniment.v1.note_pb2 import Tier as ContractTier
from muniment.v1.prompt_pb2 import PromptSectionKind as ContractKind
from tests.rpcs import RPCS
from tests.support.examples import HOST_KEY, MEMORY, NOTE_ID, PASSAGE_ID, SESSION_ID, TOKEN

SECRETS = (
    *("tea", "Assam", "taste", "next-page", TOKEN, HOST_KEY),
    *("night train", "personality", "humor", "Vienna", "travel", "trip", "Ada", "hash-of-the-prompt"),
)


def test_levels_are_those_of_the_contract():
    contract = {name.removeprefix("CLASSIFICATION_"): number for name, number in ContractLevel.items() if number}

    assert contract == {level.name: level.value for level in Classification}


def test_kinds_are_those_of_the_contract():
    contract = {name.removeprefix("ITEM_KIND_"): number for name, number in ItemKind.items() if number}

    assert contract == {kind.name: kind.value for kind in muniment.ItemKind}


def test_tiers_and_kinds_of_sections_are_those_of_the_contract():
    tiers = {name.removeprefix("TIER_"): number for name, number in ContractTier.items() if number}
    kinds = {name.removeprefix("PROMPT_SECTION_KIND_"): number for name, number in ContractKind.items() if number}

    assert tiers == {tier.name: tier.value for tier in muniment.Tier}
    assert kinds == {kind.name: kind.value for kind in muniment.PromptSectionKind}


@pytest.mark.parametrize("kind", [Classification, muniment.ItemKind, muniment.Tier, muniment.PromptSectionKind])
def test_numbers_of_the_contract_print_as_their_names(kind):
    for each in kind:
        assert (str(each), f"{each}", f"{each:>14}") == (each.name, each.name, each.name.rjust(14))
        assert json.dumps(each) == str(each.value)


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
    for method in ("ListNotes", "ListBlocks", "ListPassages"):
        answer = copy.deepcopy(RPCS[method].answer)
        answer.next_page_token = "next-page"
        server.script(method, answer)
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
        session.add_note("night train"),
        session.edit_notes([AddNote("night train")]),
        session.delete_note(NOTE_ID),
        session.list_notes_page(),
        session.search_notes("train"),
        *session.search_notes("train"),
        AddNote("night train"),
        UpdateNote(NOTE_ID, "night train"),
        BudgetEntry(NOTE_ID, 31, "night train", own_level=True, classification=Classification.PUBLIC),
        session.get_block("personality"),
        session.list_blocks_page(),
        session.get_passage(PASSAGE_ID),
        session.list_passages_page(),
        session.search_passages("Vienna"),
        *session.search_passages("Vienna"),
        NewPassage("Vienna", ["travel"], "trip", "Ada"),
        session.render_prompt(),
        muniment.settings.Settings("here", token=TOKEN),
        muniment.settings.Settings("here", host_key=HOST_KEY),
        muniment.TLS(certificate=TOKEN.encode(), key=HOST_KEY.encode()),
    ]


def test_no_repr_leaks(server, host, session):
    for value in shown(server, host, session):
        for text in (repr(value), str(value), f"{value}"):
            assert not [secret for secret in SECRETS if secret in text]


def test_a_session_is_recognized_by_its_id(host, session):
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
        answer.CopyFrom(RPCS["GetMemory"].answer)
        answer.memory.classification = number  # type: ignore[assignment]  # a number of a later contract
        server.script("GetMemory", answer)

        with pytest.raises(ValueError, match="Classification"):
            session.get_memory("tea")


def test_an_unknown_kind_does_not_hide_an_audit_event(server, host):
    answer = audit_service_pb2.ListAuditEventsResponse()
    answer.CopyFrom(RPCS["ListAuditEvents"].answer)
    answer.audit_events[0].kind = 99  # type: ignore[assignment]  # a number of a later contract
    server.script("ListAuditEvents", answer)

    (event,) = host.list_audit_events()

    assert event.kind is None


def test_an_unknown_kind_does_not_hide_a_prompt(server, session):
    answer = copy.deepcopy(RPCS["RenderPrompt"].answer)
    answer.sections[0].kind = 99
    server.script("RenderPrompt", answer)

    assert [section.kind for section in session.render_prompt().sections] == [None, muniment.PromptSectionKind.MEMORY]


def test_an_unknown_level_of_a_section_hides_the_prompt(server, session):
    """Fail closed, as for memories."""
    answer = copy.deepcopy(RPCS["RenderPrompt"].answer)
    answer.sections[0].classification = 9
    server.script("RenderPrompt", answer)

    with pytest.raises(ValueError, match="Classification"):
        session.render_prompt()
