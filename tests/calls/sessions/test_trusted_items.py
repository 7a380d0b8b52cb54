"""What sessions see of trusted and untrusted items, and what never reaches a trusted session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from muniment_server.domain.classification import Label
from tests.rpcs import RPCS, World, call
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, invalid, keys, refusal
from tests.support.canaries import new_canary
from tests.support.integrity import (
    METHODS,
    NOTE,
    PASSAGE,
    READS,
    TRUSTED,
    UNTRUSTED,
    all_are,
    fields_of,
    of_item,
    rendered,
    seen,
    write,
)
from tests.support.labels import FLOWS, trusted
from tests.support.methods import POLICIES
from tests.support.services import Caller, failure_of

LABELS = [pytest.param(label, id=label.name) for label in Label]
OF_TRUSTED = [pytest.param(label, id=label.name) for label in Label if label.name.endswith("_TRUSTED")]
BELOW: Mapping[Label, Label | None] = {
    Label.PUBLIC_TRUSTED: None,
    Label.PUBLIC: Label.PUBLIC_TRUSTED,
    Label.INTERNAL_TRUSTED: Label.PUBLIC_TRUSTED,
    Label.INTERNAL: Label.INTERNAL_TRUSTED,
    Label.CONFIDENTIAL_TRUSTED: Label.INTERNAL_TRUSTED,
    Label.CONFIDENTIAL: Label.CONFIDENTIAL_TRUSTED,
    Label.RESTRICTED_TRUSTED: Label.CONFIDENTIAL_TRUSTED,
    Label.RESTRICTED: Label.RESTRICTED_TRUSTED,
}
"""Whose version a session is shown if every label has one but its own."""
_OF_SESSIONS = sorted(
    rpc
    for rpc, method in METHODS.items()
    if not POLICIES[rpc].for_hosts and "integrity" in method.output_type.fields_by_name
)


def versions(session: Caller, kind: int, name: str) -> list[str]:
    return [each.content for each in session.list_versions(kind=kind, name=name).versions]


@pytest.mark.parametrize("label", OF_TRUSTED)
def test_a_trusted_session_finds_its_own_plan_or_none(at, label):
    """Whatever an untrusted context has written under its name, at its level or below."""
    for level in [each for each in (PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED) if each <= label.level]:
        write(at(level), "whale-poison.")

    assert seen(at(label)) == all_are()
    assert rendered(at(label)) == set()
    assert refusal(at(label).list_versions, kind=1, name="plan") == "NOT_FOUND MEMORY_NOT_FOUND"

    write(at(label), "whale-own.")

    assert seen(at(label)) == all_are(("whale-own.", label))
    assert rendered(at(label)) == {"whale-own"}
    for kind, name in ((1, "plan"), (2, NOTE), (3, "plan")):
        assert versions(at(label), kind, name) == ["whale-own."]


@pytest.mark.parametrize("reader", LABELS)
def test_a_session_is_shown_the_highest_version_below_and_before_all_others_its_own(at, reader):
    """The level counts first; of one level, untrusted is above trusted."""
    for label in reversed(Label):  # from above, since who sees a passage cannot store another with its id
        if label is not reader:
            write(at(label), f"whale-{label.name}.")
    below = BELOW[reader]

    assert seen(at(reader)) == (all_are((f"whale-{below.name}.", below)) if below else all_are())
    assert rendered(at(reader)) == ({f"whale-{below.name}"} if below else set())

    at(reader).save_memory(key="plan", content="whale-own.", tags=["tag"])
    at(reader).update_block(label="plan", content="whale-own.")
    (at(reader).update_note if below else at(reader).add_note)(note_id=NOTE, content="whale-own.")

    assert {rpc: items for rpc, items in seen(at(reader)).items() if "Passage" not in rpc} == {
        rpc: [("whale-own.", reader)] for rpc in READS if "Passage" not in rpc
    }
    assert "whale-own" in rendered(at(reader))
    others = {f"whale-{label.name}." for label in FLOWS[reader] - {reader}}
    for kind in (1, 3):
        own, *lower = versions(at(reader), kind, "plan")
        assert (own, set(lower)) == ("whale-own.", others)


def test_a_confidential_version_is_shown_before_a_public_one_that_is_untrusted(at):
    at(Label.PUBLIC).save_memory(key="plan", content="public", tags=["a"])
    at(Label.CONFIDENTIAL_TRUSTED).save_memory(key="plan", content="confidential", tags=["b"])

    shown = at(Label.RESTRICTED).get_memory(key="plan").memory
    assert (shown.content, of_item(shown)) == ("confidential", Label.CONFIDENTIAL_TRUSTED)
    assert keys(at(Label.RESTRICTED).list_memories(tag="a")) == []


def test_a_newer_version_that_is_shadowed_says_what_it_is(at):
    at(Label.CONFIDENTIAL).save_memory(key="plan", content="old")
    at(Label.PUBLIC_TRUSTED).save_memory(key="plan", content="corrected")

    newer = at(Label.CONFIDENTIAL).get_memory(key="plan").memory.newer_below
    assert of_item(newer) is Label.PUBLIC_TRUSTED
    at(Label.CONFIDENTIAL_TRUSTED).save_memory(key="plan", content="corrected again")
    assert of_item(at(Label.CONFIDENTIAL).get_memory(key="plan").memory.newer_below) is Label.CONFIDENTIAL_TRUSTED
    at(Label.PUBLIC).save_memory(key="plan", content="spoiled")
    assert not at(Label.CONFIDENTIAL_TRUSTED).get_memory(key="plan").memory.HasField("newer_below")


@pytest.mark.parametrize("level", [PUBLIC, RESTRICTED])
def test_who_deletes_an_untrusted_version_learns_what_it_reveals(at, level):
    write(at(trusted(level)), "whale-trusted.")
    at(level).save_memory(key="plan", content="untrusted")
    at(level).update_note(note_id=NOTE, content="untrusted")
    at(level).update_block(label="plan", content="untrusted")

    answers = [
        at(level).delete_memory(key="plan"),
        at(level).delete_note(note_id=NOTE),
        at(level).delete_block(label="plan"),
    ]

    assert [(each.revealed, each.revealed_integrity) for each in answers] == [(level, TRUSTED)] * 3
    assert [each.integrity for each in answers] == [UNTRUSTED] * 3
    assert seen(at(level)) == all_are(("whale-trusted.", trusted(level)))


def test_an_untrusted_session_deletes_nothing_that_is_trusted(at):
    write(at(Label.PUBLIC_TRUSTED), "whale-trusted.")
    session = at(Label.PUBLIC)
    for delete, fields in (
        (session.delete_memory, {"key": "plan"}),
        (session.delete_note, {"note_id": NOTE}),
        (session.delete_block, {"label": "plan"}),
        (session.delete_passage, {"passage_id": PASSAGE}),
    ):
        assert failure_of(delete, **fields).code.name in {"FAILED_PRECONDITION", "NOT_FOUND"}
    assert session.delete_memories(tag="tag").deleted_count == 0
    assert session.delete_passages(tag="tag").deleted_count == 0

    assert seen(at(Label.PUBLIC_TRUSTED)) == all_are(("whale-trusted.", Label.PUBLIC_TRUSTED))


@pytest.mark.parametrize("level", [PUBLIC, CONFIDENTIAL])
def test_nothing_that_a_trusted_session_reads_changes_by_what_is_untrusted(at, level):
    """Counts, budgets, scores and etags too."""
    session = at(trusted(level))
    write(session, "whale-own.")

    def answers() -> list[bytes]:
        return [
            session.list_memories().SerializeToString(),
            session.list_notes(tier=1).SerializeToString(),
            session.list_blocks().SerializeToString(),
            session.list_passages().SerializeToString(),
            session.render_prompt().SerializeToString(),
            session.search_memories(query="whale own").SerializeToString(),
            session.search_notes(query="whale own").SerializeToString(),
            session.search_passages(query="whale own").SerializeToString(),
            session.list_versions(kind=1, name="plan", with_revisions=True).SerializeToString(),
        ]

    before = answers()
    for number in range(8):
        for low in {PUBLIC, level}:
            at(low).save_memory(key=f"plan{number}", content="whale own whale", tags=["tag"])
            at(low).add_note(content=f"whale own {number}")
            at(low).update_block(label=f"plan{number}", content="whale own")
            at(low).store_passage(content=f"whale own {number}", thread="t")
    for low in {PUBLIC, level}:
        at(low).save_memory(key="plan", content="whale poison")
        at(low).update_block(label="plan", content="whale poison")

    assert answers() == before


@pytest.mark.parametrize("label", LABELS)
def test_a_shared_block_reaches_sessions_of_labels_that_it_may_flow_to(host, session, alice, label):
    """What hosts write is untrusted, as what the first blocks of an agent have in them."""
    host.create_agent(agent_id="bob")
    host.create_shared_block(owner_agent_id="alice", label="plan", content="of the host")
    host.attach_block(owner_agent_id="alice", label="plan", agent_id="bob")
    reader = session(label, agent_id="bob")

    def shared() -> list[str]:
        return [block.content for block in reader.list_blocks().blocks if block.owner_agent_id == "alice"]

    assert shared() == (["of the host"] if Label.PUBLIC in FLOWS[label] else [])
    session(Label.PUBLIC_TRUSTED).update_block(label="plan", content="of a trusted session")
    assert shared() == (["of the host"] if Label.PUBLIC in FLOWS[label] else ["of a trusted session"])


@pytest.mark.parametrize("label", [Label.INTERNAL_TRUSTED, Label.INTERNAL], ids=lambda label: label.name)
def test_every_response_of_a_session_has_its_integrity(host, label):
    """What a session is shown depends on all that it can see, even if all of that is trusted."""

    def answer(rpc: str) -> Any:
        word = new_canary()
        World(word).fill_agents(host)
        opened = host.open_session(agent_id=word, **fields_of(label))
        world, session = World(word, opened.session.session_id, int(label.level)), host.session(opened)
        world.fill(session, "text")
        return call(session, rpc, RPCS[rpc].request(world), timeout=60)

    answers = {rpc: answer(rpc) for rpc in _OF_SESSIONS}

    assert {rpc: answer.integrity for rpc, answer in answers.items()} == dict.fromkeys(_OF_SESSIONS, label.integrity)
    assert len(answers) > 25


def test_a_trusted_item_is_trusted_in_an_untrusted_answer(at):
    write(at(Label.PUBLIC_TRUSTED), "whale-trusted.")

    assert seen(at(Label.PUBLIC)) == all_are(("whale-trusted.", Label.PUBLIC_TRUSTED))
    answers = [at(Label.PUBLIC).get_memory(key="plan"), at(Label.PUBLIC).list_memories()]
    assert [answer.integrity for answer in answers] == [UNTRUSTED] * 2


def test_a_section_of_the_prompt_is_trusted_if_all_in_it_is(at):
    write(at(Label.PUBLIC_TRUSTED), "whale-trusted.")

    def sections(session: Caller) -> list[tuple[str, int]]:
        found = session.render_prompt().sections
        return [(each.label or "notes", each.integrity) for each in found if each.label in {"", "plan"}]

    assert sections(at(Label.PUBLIC_TRUSTED)) == [("plan", TRUSTED), ("notes", TRUSTED)]
    assert sections(at(Label.INTERNAL)) == [("plan", TRUSTED), ("notes", TRUSTED)]
    at(Label.PUBLIC).add_note(content="untrusted")
    assert sections(at(Label.INTERNAL)) == [("plan", TRUSTED), ("notes", UNTRUSTED)]


def test_an_item_that_was_deleted_trusted_comes_back_trusted_only(host, at):
    session = at(Label.INTERNAL_TRUSTED)
    session.save_memory(key="plan", content="text")
    session.delete_memory(key="plan")
    plan = {"agent_id": "alice", "kind": 1, "name": "plan", "classification": INTERNAL}

    assert refusal(host.undelete_item, **plan) == "NOT_FOUND MEMORY_NOT_FOUND"
    host.undelete_item(**plan, integrity=TRUSTED)
    assert of_item(session.get_memory(key="plan").memory) is Label.INTERNAL_TRUSTED
    assert invalid(host.undelete_item, **plan, integrity=2) == ["integrity"]


def test_an_erasure_erases_what_is_trusted_too(host, at):
    for label in Label:
        at(label).save_memory(key="plan", content="whale-pii.")
    host.erase_items(agent_id="alice", kind=1, name="plan")

    for label in Label:
        assert refusal(at(label).get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
        assert keys(at(label).search_memories(query="whale")) == []
