"""Two tiers: which one a call means, which one a note is in, and a tier that the host has switched off."""

from __future__ import annotations

import uuid

import pytest

from tests.support.answers import INTERNAL, LEVELS, PUBLIC, UP, events, invalid, refusal
from tests.support.services import failure_of, reason_of

MEMORY, USER = 1, 2
TIERS = (MEMORY, USER)
A, B = (str(uuid.UUID(int=number)) for number in (1, 2))
OFF = "FAILED_PRECONDITION TIER_DISABLED"


@pytest.fixture
def switch(host, session):
    """Switches a tier of `alice` off and on."""
    session(PUBLIC)
    names = {MEMORY: "memory_enabled", USER: "user_profile_enabled"}

    def switched(tier, on):
        host.update_agent(agent_id="alice", memory_settings={names[tier]: on})

    return switched


def seen(session, tier):
    return {note.note_id: note.content for note in session.list_notes(tier=tier).notes}


def calls(session, tier, note_id=A):
    """A call of each kind that names a note or a tier."""
    yield session.add_note, {"content": "new", "tier": tier}
    yield session.update_note, {"content": "new", "note_id": note_id, "tier": tier}
    yield session.edit_notes, {"edits": [{"add": {"content": "new"}}], "tier": tier}
    yield session.edit_notes, {"edits": [{"update": {"content": "new", "note_id": note_id}}], "tier": tier}


def test_no_tier_is_the_agents_notes_on_every_call(at):
    session = at(PUBLIC)
    assert session.add_note(content="one", note_id=A).note.tier == MEMORY
    session.add_note(content="other", note_id=B, tier=USER)
    assert session.update_note(content="two whales", note_id=A).note.tier == MEMORY
    assert session.edit_notes(edits=[{"add": {"content": "three"}}]).notes[0].tier == MEMORY
    answers = [session.list_notes(), session.search_notes(query="whales"), session.delete_note(note_id=A)]

    assert {answer.usage.tier for answer in answers} == {MEMORY}
    assert [note.content for note in answers[0].notes] == ["two whales", "three"]
    assert len(answers[1].results) == 1
    assert list(seen(session, USER).values()) == ["other"]


@pytest.mark.parametrize("tier", [3, -1, 2**31 - 1])
@pytest.mark.parametrize(
    ("rpc", "fields"),
    [
        ("add_note", {"content": "x"}),
        ("update_note", {"content": "x", "note_id": A}),
        ("delete_note", {"note_id": A}),
        ("edit_notes", {"edits": [{"delete": {"note_id": A}}]}),
        ("list_notes", {}),
        ("search_notes", {"query": "x"}),
    ],
)
def test_an_unknown_tier_is_refused(at, rpc, fields, tier):
    assert invalid(getattr(at(PUBLIC), rpc), tier=tier, **fields) == ["tier"]


@pytest.mark.parametrize(("tier", "name"), [(MEMORY, "TIER_MEMORY"), (USER, "TIER_USER")])
def test_a_note_of_the_other_tier_is_not_found_and_the_text_says_where_it_is(at, tier, name):
    session = at(PUBLIC)
    session.add_note(content="text", note_id=A, tier=tier)
    (other,) = set(TIERS) - {tier}

    outcomes = [
        failure_of(session.update_note, content="x", note_id=A, tier=other),
        failure_of(session.delete_note, note_id=A, tier=other),
        failure_of(session.edit_notes, edits=[{"update": {"note_id": A, "content": "x"}}], tier=other),
        failure_of(session.edit_notes, edits=[{"delete": {"note_id": A}}], tier=other),
    ]

    assert {(each.code.name, reason_of(each)) for each in outcomes} == {("NOT_FOUND", "NOTE_NOT_FOUND")}
    assert len({each.message for each in outcomes}) == 1
    assert outcomes[0].message.endswith(f"it is in {name}")
    assert seen(session, tier) == {A: "text"}


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_text_does_not_say_where_a_hidden_note_is(at, low, high):
    at(high).add_note(content="text", note_id=A, tier=USER)

    outcome = failure_of(at(low).delete_note, note_id=A, tier=MEMORY)

    assert outcome == failure_of(at(low).delete_note, note_id=B, tier=MEMORY)
    assert "TIER" not in outcome.message


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_tier_is_that_of_the_version_seen(at, low, high):
    """Two levels chose one id for notes of different tiers, unknown to each other."""
    at(high).add_note(content="high", note_id=A, tier=USER)
    at(low).add_note(content="low", note_id=A, tier=MEMORY)

    assert (seen(at(high), MEMORY), seen(at(high), USER)) == ({}, {A: "high"})
    assert (seen(at(low), MEMORY), seen(at(low), USER)) == ({A: "low"}, {})
    assert failure_of(at(high).update_note, content="x", note_id=A).message.endswith("it is in TIER_USER")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_that_is_off_takes_no_additions_and_no_updates(at, host, switch, level, tier):
    at(level).add_note(content="text", note_id=A, tier=tier)
    switch(tier, False)
    before = events(host)

    refusals = [refusal(call, **fields) for call, fields in calls(at(level), tier)]
    recorded = [event for event in events(host) if event not in before]

    assert refusals == [OFF] * 4
    assert seen(at(level), tier) == {A: "text"}
    assert [(event.outcome, event.classification) for event in recorded] == [("TIER_DISABLED", level)] * 4


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_that_is_off_is_off_for_existing_notes_too(at, switch, tier):
    """The repetition of an addition, a duplicate, an update that changes nothing."""
    at(PUBLIC).add_note(content="text", note_id=A, tier=tier)
    switch(tier, False)

    assert refusal(at(PUBLIC).add_note, content="text", note_id=A, tier=tier) == OFF
    assert refusal(at(PUBLIC).add_note, content="text", tier=tier) == OFF
    assert refusal(at(PUBLIC).update_note, content="text", note_id=A, tier=tier) == OFF


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_that_is_off_can_be_listed_searched_and_deleted_from(at, switch, tier):
    session = at(PUBLIC)
    for note_id, content in ((A, "whale"), (B, "zebra")):
        session.add_note(content=content, note_id=note_id, tier=tier)
    switch(tier, False)

    assert seen(session, tier) == {A: "whale", B: "zebra"}
    assert session.list_notes(tier=tier).usage.used_chars == 13
    assert len(session.search_notes(query="whale", tier=tier).results) == 1
    session.delete_note(note_id=A, tier=tier)
    session.edit_notes(edits=[{"delete": {"note_id": B}}], tier=tier)
    assert seen(session, tier) == {}


@pytest.mark.parametrize("tier", TIERS)
def test_the_other_tier_is_not_touched(at, switch, tier):
    switch(tier, False)
    (other,) = set(TIERS) - {tier}

    at(PUBLIC).add_note(content="text", note_id=A, tier=other)
    at(PUBLIC).update_note(content="new", note_id=A, tier=other)

    assert seen(at(PUBLIC), other) == {A: "new"}


def test_a_tier_that_was_switched_off_in_between_refuses_the_next_edit_whole(at, switch):
    """Deletes among other edits are not made either; by themselves they are."""
    session = at(INTERNAL)
    session.add_note(content="text", note_id=A)
    switch(MEMORY, False)

    edits = [{"delete": {"note_id": A}}, {"add": {"content": "new"}}]
    assert refusal(session.edit_notes, edits=edits) == OFF
    assert refusal(session.edit_notes, edits=edits, validate_only=True) == OFF
    assert seen(session, MEMORY) == {A: "text"}


def test_a_tier_that_is_switched_on_again_is_as_it_was(at, switch):
    at(PUBLIC).add_note(content="text", note_id=A)
    switch(MEMORY, False)
    switch(MEMORY, True)

    assert seen(at(PUBLIC), MEMORY) == {A: "text"}
    assert at(PUBLIC).update_note(content="new", note_id=A).note.content == "new"


def test_an_agent_may_begin_with_a_tier_off(host, session):
    host.create_agent(agent_id="bob", memory_settings={"user_profile_enabled": False})

    assert refusal(session(PUBLIC, agent_id="bob").add_note, content="x", tier=USER) == OFF
    session(PUBLIC, agent_id="bob").add_note(content="x", tier=MEMORY)
