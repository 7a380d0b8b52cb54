"""EditNotes: several edits, all or none."""

from __future__ import annotations

import uuid

import pytest

from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, UP, events, invalid, refusal
from tests.support.invariants import broken_invariants

MEMORY, USER = 1, 2
A, B, C = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
GONE = "NOT_FOUND NOTE_NOT_FOUND"


def add(content, note_id=""):
    return {"add": {"content": content, "note_id": note_id}}


def update(note_id, content):
    return {"update": {"note_id": note_id, "content": content}}


def delete(note_id):
    return {"delete": {"note_id": note_id}}


def seen(session, tier=MEMORY):
    """The notes of a session: content by id."""
    return {note.note_id: note.content for note in session.list_notes(tier=tier).notes}


def written(host):
    """(method, outcome, revision) of every event about notes."""
    methods = ("AddNote", "UpdateNote", "DeleteNote", "EditNotes")
    return [(event.method, event.outcome, event.revision) for event in events(host) if event.method in methods]


@pytest.mark.parametrize("level", LEVELS)
def test_all_three_edits_are_made_at_the_taint(at, level):
    session = at(level)
    session.add_note(content="a", note_id=A)
    session.add_note(content="b", note_id=B)

    answer = session.edit_notes(edits=[add("c", C), update(A, "new"), delete(B)])

    assert [(note.note_id, note.content, note.classification) for note in answer.notes] == [
        (C, "c", level),
        (A, "new", level),
    ]
    assert seen(session) == {A: "new", C: "c"}
    assert answer.classification == level
    assert list(session.list_notes().notes) == [answer.notes[1], answer.notes[0]]


def test_one_edit_is_as_the_call_for_it(at, session):
    """Add, update and delete are edits of one."""
    one, other = at(PUBLIC), session(PUBLIC, agent_id="bob")

    for call, fields, edit in (
        (one.add_note, {"content": "text", "note_id": A}, add("text", A)),
        (one.update_note, {"content": "new", "note_id": A}, update(A, "new")),
        (one.delete_note, {"note_id": A}, delete(A)),
    ):
        assert call(**fields).usage == other.edit_notes(edits=[edit]).usage
        assert seen(one) == seen(other)


def test_up_to_100_edits_are_made(at):
    answer = at(PUBLIC).edit_notes(edits=[add(f"{number}") for number in range(100)])

    assert [note.content for note in answer.notes] == [f"{number}" for number in range(100)]
    stored = at(PUBLIC).list_notes(page_size=250).notes
    assert [note.content for note in stored] == [f"{number}" for number in range(100)]


@pytest.mark.parametrize("edits", [[], [delete(A)] * 101])
def test_no_edits_and_more_than_100_are_refused(at, edits):
    assert invalid(at(PUBLIC).edit_notes, edits=edits) == ["edits"]


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({}, "edits[1].edit"),
        (add(""), "edits[1].add.content"),
        (add("a\0"), "edits[1].add.content"),
        (add("x" * 65537), "edits[1].add.content"),
        (add("x", "no id"), "edits[1].add.note_id"),
        (update(A, ""), "edits[1].update.content"),
        (update(A, "a\0"), "edits[1].update.content"),
        (update("", "x"), "edits[1].update.note_id"),
        (delete(""), "edits[1].delete.note_id"),
        (delete("no id"), "edits[1].delete.note_id"),
    ],
)
def test_an_edit_that_breaks_a_rule_is_named_and_undoes_the_others(at, edit, field):
    assert invalid(at(PUBLIC).edit_notes, edits=[add("text"), edit]) == [field]
    assert seen(at(PUBLIC)) == {}


def test_an_edit_sees_what_those_before_it_did(at):
    answer = at(PUBLIC).edit_notes(edits=[add("one", A), update(A, "two"), delete(A), add("three", A)])

    assert [note.content for note in answer.notes] == ["one", "two", "three"]
    assert seen(at(PUBLIC)) == {A: "three"}
    assert answer.usage.used_chars == 5


def test_a_note_may_be_added_and_deleted_in_one_call(service):
    session = service.session(PUBLIC)
    answer = session.edit_notes(edits=[add("one", A), update(A, "two"), delete(A)])

    assert (seen(session), answer.usage.used_chars) == ({}, 0)
    assert broken_invariants(service.database) == []


def test_a_note_updated_twice_is_there_twice_and_stored_once(at):
    at(PUBLIC).add_note(content="zero", note_id=A)
    answer = at(PUBLIC).edit_notes(edits=[update(A, "one"), update(A, "two")])

    assert [note.content for note in answer.notes] == ["one", "two"]
    assert list(at(PUBLIC).list_notes().notes) == [answer.notes[1]]


def test_two_additions_of_one_text_are_one_note(at):
    answer = at(PUBLIC).edit_notes(edits=[add("text", A), add("text", B)])

    assert answer.notes[0] == answer.notes[1]
    assert seen(at(PUBLIC)) == {A: "text"}


def test_notes_added_together_are_listed_in_the_order_of_the_edits(at):
    contents = [f"{number:02}" for number in range(40)]
    answer = at(PUBLIC).edit_notes(edits=[add(content) for content in contents])

    assert [note.content for note in at(PUBLIC).list_notes().notes] == contents
    assert len({note.create_time.ToNanoseconds() for note in answer.notes}) == 40


def test_tiers_are_edited_apart(at):
    at(PUBLIC).edit_notes(edits=[add("memory", A)])
    at(PUBLIC).edit_notes(edits=[add("user", B)], tier=USER)

    assert (seen(at(PUBLIC), MEMORY), seen(at(PUBLIC), USER)) == ({A: "memory"}, {B: "user"})
    assert refusal(at(PUBLIC).edit_notes, edits=[update(A, "x")], tier=USER) == GONE


@pytest.mark.parametrize(
    ("failing", "answer"),
    [
        (update(C, "x"), GONE),
        (delete(C), GONE),
        (add("other", A), "ALREADY_EXISTS NOTE_EXISTS"),
        (add("x" * 3000), "FAILED_PRECONDITION BUDGET_EXCEEDED"),
        (delete(B), "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_edit_that_fails_undoes_all(at, host, failing, answer, place):
    at(PUBLIC).add_note(content="below", note_id=B)
    at(INTERNAL).add_note(content="own", note_id=A)
    before, log = at(INTERNAL).list_notes(), written(host)
    edits = [add("new"), update(B, "above")]
    edits.insert(place, failing)
    if failing == delete(B) and place == 2:  # by then there is an own-level version to delete
        edits = [add("new"), failing, failing]

    assert refusal(at(INTERNAL).edit_notes, edits=edits) == answer
    assert at(INTERNAL).list_notes() == before
    assert [event for event in written(host) if event not in log] in (
        [],
        [("EditNotes", answer.split()[1], 0)],
    )


def test_each_note_that_is_written_is_one_event_and_one_that_is_kept_is_none(at, host):
    session = at(INTERNAL)
    session.add_note(content="kept", note_id=A)
    session.add_note(content="old", note_id=B)
    session.edit_notes(edits=[add("kept"), update(B, "new"), add("added"), update(A, "kept"), delete(B)])

    assert sorted(written(host)) == [
        ("AddNote", "OK", 1),
        ("AddNote", "OK", 1),
        ("EditNotes", "OK", 1),  # added
        ("EditNotes", "OK", 2),  # updated
        ("EditNotes", "OK", 2),  # deleted
    ]


def test_edits_that_keep_everything_are_no_event(at, host):
    at(PUBLIC).add_note(content="text", note_id=A)
    before = written(host)
    answer = at(PUBLIC).edit_notes(edits=[add("text", A), add("text"), add("text", B)])

    assert [note.note_id for note in answer.notes] == [A, A, A]
    assert written(host) == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_note_that_is_kept_is_returned_with_its_own_label(at, low, high):
    below = at(low).add_note(content="low", note_id=A).note
    answer = at(high).edit_notes(edits=[add("low", A)])

    assert list(answer.notes) == [below]
    assert answer.classification == low


def test_c09_the_classification_is_the_join_of_the_notes(at):
    at(PUBLIC).add_note(content="low", note_id=A)
    at(RESTRICTED).add_note(content="own", note_id=B)

    found = [
        at(RESTRICTED).edit_notes(edits=edits).classification
        for edits in ([add("low", A)], [add("low", A), add("new")], [delete(B)])
    ]

    assert found == [PUBLIC, RESTRICTED, PUBLIC]


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_note_that_is_kept_after_the_own_version_was_deleted_is_the_one_revealed(at, low, high):
    """What is returned is what is seen at that point, not the version that the edit before took away."""
    below = at(low).add_note(content="low", note_id=A).note
    at(high).update_note(content="high", note_id=A)

    answer = at(high).edit_notes(edits=[delete(A), add("low", A)])

    assert list(answer.notes) == [below]
    assert answer.classification == low
    assert list(at(high).list_notes().notes) == [below]


def test_the_usage_is_that_of_the_end(at):
    answer = at(PUBLIC).edit_notes(edits=[add("12345", A), add("123", B), delete(A)])

    assert (answer.usage.used_chars, answer.usage.limit_chars, answer.usage.percent) == (3, 2200, 0)
    assert at(PUBLIC).list_notes().usage == answer.usage


# validate_only.


@pytest.mark.parametrize("level", LEVELS)
def test_edits_that_are_only_validated_write_nothing_and_say_what_usage_would_be(at, host, level):
    at(level).add_note(content="12345", note_id=A)
    before, log = at(level).list_notes(), written(host)

    answer = at(level).edit_notes(edits=[add("123"), update(A, "1")], validate_only=True)

    assert (list(answer.notes), answer.usage.used_chars, answer.classification) == ([], 1 + 3 + 3, PUBLIC)
    assert at(level).list_notes() == before
    assert written(host) == log


def test_edits_that_are_only_validated_leave_nothing_in_the_tables(service):
    session = service.session(CONFIDENTIAL)
    session.edit_notes(edits=[add("text", A)], validate_only=True)

    with service.database.as_owner() as owner:
        counts = [
            owner.execute(f"SELECT count(*) FROM muniment_confidential.{table}").fetchone()[0]
            for table in ("item", "revision", "audit")
        ]
    assert counts == [0, 0, 0]


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (delete(A), GONE),
        (update(A, "x"), GONE),
        (add("x" * 2201), "FAILED_PRECONDITION BUDGET_EXCEEDED"),
    ],
)
def test_edits_that_are_only_validated_are_refused_like_those_that_are_made(at, edit, answer):
    checked = at(PUBLIC).observe("EditNotes", edits=[edit], validate_only=True)

    assert refusal(at(PUBLIC).edit_notes, edits=[edit]) == answer
    assert checked == at(PUBLIC).observe("EditNotes", edits=[edit])


def test_validating_blocks_no_one(at, session):
    """The lock it took is given back at once. One that was left would be given up after 5 s."""
    for _ in range(20):
        at(PUBLIC).edit_notes(edits=[add("text")], validate_only=True)
        session(PUBLIC).add_note(content="text")

    assert list(seen(at(PUBLIC)).values()) == ["text"]
