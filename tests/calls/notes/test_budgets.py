"""Budgets: what is counted, what is refused, and what a refusal says."""

from __future__ import annotations

import uuid
from typing import Any

import grpc
import pytest

from muniment.v1 import classification_pb2, note_pb2
from muniment_server.domain.classification import Label
from muniment_server.domain.prompt import RULER
from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PUBLIC,
    RESTRICTED,
    UP,
    detail,
    events,
    packed_status,
    refusal,
)
from tests.support.services import failure_of, reason_of

MEMORY, USER = 1, 2
A, B, C, D = (str(uuid.UUID(int=number)) for number in (1, 2, 3, 4))
OVER = "FAILED_PRECONDITION BUDGET_EXCEEDED"


@pytest.fixture
def limit(host, session):
    """Sets the budgets of `alice`."""
    session(PUBLIC)

    def set_limit(memory=None, user=None):
        host.update_agent(agent_id="alice", memory_settings={"memory_char_limit": memory, "user_char_limit": user})

    return set_limit


def add(content, note_id=""):
    return {"add": {"content": content, "note_id": note_id}}


def update(note_id, content):
    return {"update": {"note_id": note_id, "content": content}}


def delete(note_id):
    return {"delete": {"note_id": note_id}}


def contents(session, tier=MEMORY):
    return [note.content for note in session.list_notes(tier=tier).notes]


def used(response):
    """(used, limit, percent) of a response."""
    return response.usage.used_chars, response.usage.limit_chars, response.usage.percent


def refused(call, **fields):
    """The detail of a refusal by the budget."""
    outcome = failure_of(call, **fields)
    assert reason_of(outcome) == "BUDGET_EXCEEDED"
    return detail(outcome, note_pb2.BudgetExceeded)


# What is counted.


@pytest.mark.parametrize(("tier", "most"), [(MEMORY, 2200), (USER, 1375)])
@pytest.mark.parametrize("level", LEVELS)
def test_a_tier_takes_exactly_its_limit_and_not_one_more(at, level, tier, most):
    assert refusal(at(level).add_note, content="x" * (most + 1), tier=tier) == OVER
    assert used(at(level).add_note(content="x" * most, tier=tier)) == (most, most, 100)
    assert refusal(at(level).add_note, content="x", tier=tier) == OVER


@pytest.mark.parametrize(
    ("content", "length"),
    [
        ("x", 1),
        ("\U0001f600", 1),
        ("நினைவு", 6),
        ("e\u0301", 2),
        ("é", 1),
        ("👩\u200d💻", 3),
        ("\r\n", 2),
        ("\n§\n", 4),  # escaped, as in the prompt
        ("\u202e", 8),
        ("\x01", 5),
        ("\n# a", 5),
    ],
)
def test_code_points_are_counted_and_neither_bytes_nor_what_looks_like_one(at, limit, content, length):
    limit(memory=10 * length)

    assert used(at(PUBLIC).add_note(content=content * 10)) == (10 * length, 10 * length, 100)
    limit(memory=10 * length - 1)
    assert refusal(at(PUBLIC).add_note, content=content + "x") == OVER


def test_a_tier_takes_no_more_of_the_prompt_than_its_budget(at):
    """One of 2,200 invisible characters would take 17,600."""
    assert refused(at(PUBLIC).add_note, content="\u202e" * 2200).would_be_chars == 17_600
    usage = at(PUBLIC).add_note(content="§\n" * 100 + "\u202e" * 200).usage
    at(PUBLIC).add_note(content="x" * (2200 - usage.used_chars - 3))

    *_, notes = at(PUBLIC).render_prompt(omit_usage=True).text.partition(f"{RULER}\nMEMORY (agent notes)\n{RULER}\n")
    assert len(notes) == 2200


@pytest.mark.parametrize("rpc", ["AddNote", "UpdateNote", "EditNotes"])
def test_every_call_that_writes_is_checked_against_the_limit(at, limit, rpc):
    """At the limit it goes through, one over it is refused."""
    limit(memory=10)
    session = at(PUBLIC)
    session.add_note(content="1", note_id=A)
    fields = {
        "AddNote": lambda content: {"content": content[4:]},  # its separator counts too, and A
        "UpdateNote": lambda content: {"content": content, "note_id": A},
        "EditNotes": lambda content: {"edits": [update(A, content)]},
    }[rpc]

    assert refusal(session.call, rpc=rpc, **fields("x" * 11)) == OVER
    assert used(session.call(rpc, **fields("x" * 10))) == (10, 10, 100)


def test_the_separator_counts_three(at, limit):
    limit(memory=10)
    at(PUBLIC).add_note(content="12345")

    assert refusal(at(PUBLIC).add_note, content="123") == OVER
    assert used(at(PUBLIC).add_note(content="12")) == (10, 10, 100)


def test_each_tier_has_its_own_budget(at, limit):
    limit(memory=5, user=3)
    at(PUBLIC).add_note(content="12345")

    assert used(at(PUBLIC).add_note(content="123", tier=USER)) == (3, 3, 100)
    assert used(at(PUBLIC).list_notes()) == (5, 5, 100)


def test_a_note_that_is_there_already_is_no_addition(at, limit):
    """Also at the limit a repetition is answered as the first time."""
    limit(memory=4)
    once = at(PUBLIC).observe("AddNote", content="text", note_id=A)

    assert at(PUBLIC).observe("AddNote", content="text", note_id=A) == once
    assert at(PUBLIC).add_note(content="text").note.note_id == A


def test_every_response_says_how_much_is_used(at):
    session = at(PUBLIC)
    answers = [
        session.add_note(content="12345", note_id=A),
        session.update_note(content="123", note_id=A),
        session.edit_notes(edits=[add("12", B)]),
        session.edit_notes(edits=[add("1")], validate_only=True),
        session.list_notes(),
        session.search_notes(query="12"),
        session.delete_note(note_id=A),
        session.list_notes(tier=USER),
    ]

    assert [answer.usage.used_chars for answer in answers] == [5, 3, 8, 12, 8, 8, 2, 0]
    assert [answer.usage.limit_chars for answer in answers] == [2200] * 7 + [1375]
    assert [answer.usage.tier for answer in answers] == [MEMORY] * 7 + [USER]


@pytest.mark.parametrize(("length", "percent"), [(924, 42), (21, 0), (22, 1), (2199, 99)])
def test_percent_is_rounded_down(at, length, percent):
    assert at(PUBLIC).add_note(content="x" * length).usage.percent == percent


# Whose notes count.


@pytest.mark.parametrize(("low", "high"), UP)
def test_notes_from_below_count_and_notes_above_do_not(at, limit, low, high):
    limit(memory=10)
    at(low).add_note(content="12345")

    assert used(at(high).list_notes()) == (5, 10, 50)
    assert refusal(at(high).add_note, content="123") == OVER
    assert used(at(high).add_note(content="12")) == (10, 10, 100)
    assert used(at(low).add_note(content="12")) == (10, 10, 100)


@pytest.mark.parametrize(("low", "high"), UP)
def test_what_is_above_is_not_in_a_refusal(at, limit, low, high):
    """Byte for byte the same as without it."""
    limit(memory=10)
    at(low).add_note(content="12345", note_id=A)
    before = failure_of(at(low).add_note, content="123456")
    at(high).update_note(content="above", note_id=A)
    at(high).add_note(content="12")

    assert failure_of(at(low).add_note, content="123456") == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_shadowed_version_does_not_count(at, limit, low, high):
    limit(memory=10)
    at(low).add_note(content="x" * 10, note_id=A)

    assert used(at(high).update_note(content="1", note_id=A)) == (1, 10, 10)
    assert used(at(high).add_note(content="123456")) == (10, 10, 100)
    assert used(at(low).list_notes()) == (10, 10, 100)


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_high_view_may_be_over_the_limit_and_says_so(at, limit, low, high):
    """Both fit where they were written; together they do not, and no one is asked to make room for the other."""
    limit(memory=10)
    at(high).add_note(content="h" * 10, note_id=A)
    at(low).add_note(content="l" * 10)

    assert used(at(high).list_notes()) == (23, 10, 230)
    assert used(at(low).list_notes()) == (10, 10, 100)


@pytest.fixture
def over(at, limit):
    """A session at INTERNAL that sees 23 of 10 characters: own note A, lower note B."""
    limit(memory=10)
    at(INTERNAL).add_note(content="h" * 10, note_id=A)
    at(PUBLIC).add_note(content="l" * 10, note_id=B)
    return at(INTERNAL)


def test_an_edit_that_does_not_increase_usage_is_allowed_above_the_limit(over):
    assert used(over.update_note(content="H" * 10, note_id=A)) == (23, 10, 230)
    assert used(over.update_note(content="H" * 9, note_id=A)) == (22, 10, 220)
    assert used(over.update_note(content="L" * 10, note_id=B)) == (22, 10, 220)
    assert used(over.edit_notes(edits=[delete(A), add("h" * 9)])) == (22, 10, 220)


def test_an_edit_that_increases_usage_is_refused_above_the_limit(over):
    assert refusal(over.update_note, content="h" * 11, note_id=A) == OVER
    assert refusal(over.update_note, content="l" * 11, note_id=B) == OVER
    assert refusal(over.add_note, content="x") == OVER
    assert refusal(over.edit_notes, edits=[delete(A), add("h" * 11)]) == OVER
    assert contents(over) == ["h" * 10, "l" * 10]


def test_a_delete_is_never_checked_against_the_budget(at, limit):
    """Not even one that reveals a longer version."""
    limit(memory=10)
    at(PUBLIC).add_note(content="x" * 10, note_id=A)
    at(INTERNAL).update_note(content="1", note_id=A)
    at(INTERNAL).add_note(content="1234", note_id=C)

    assert used(at(INTERNAL).delete_note(note_id=A)) == (17, 10, 170)
    at(INTERNAL).edit_notes(edits=[update(A, "1")])
    assert used(at(INTERNAL).edit_notes(edits=[delete(A)])) == (17, 10, 170)


def test_a_delete_among_other_edits_is_checked_with_them(at, limit):
    limit(memory=10)
    at(PUBLIC).add_note(content="x" * 10, note_id=A)
    at(INTERNAL).update_note(content="1", note_id=A)
    at(INTERNAL).add_note(content="1234", note_id=C)

    assert refusal(at(INTERNAL).edit_notes, edits=[delete(A), update(C, "12")]) == OVER
    assert contents(at(INTERNAL)) == ["1", "1234"]


def test_a_limit_of_0_takes_nothing(at, limit):
    limit(memory=0, user=0)

    for tier in (MEMORY, USER):
        assert refusal(at(PUBLIC).add_note, content="x", tier=tier) == OVER
        assert used(at(PUBLIC).list_notes(tier=tier)) == (0, 0, 0)


def test_a_limit_that_is_lowered_below_what_is_used_evicts_nothing(at, limit):
    at(PUBLIC).add_note(content="x" * 20, note_id=A)
    at(PUBLIC).add_note(content="y" * 20, note_id=B)
    limit(memory=10)

    assert contents(at(PUBLIC)) == ["x" * 20, "y" * 20]
    assert used(at(PUBLIC).list_notes()) == (43, 10, 430)
    assert refusal(at(PUBLIC).add_note, content="z") == OVER
    assert used(at(PUBLIC).update_note(content="x" * 19, note_id=A)) == (42, 10, 420)
    assert used(at(PUBLIC).delete_note(note_id=A)) == (20, 10, 200)
    limit(memory=0)
    assert used(at(PUBLIC).list_notes()) == (20, 0, 100)
    assert used(at(PUBLIC).delete_note(note_id=B)) == (0, 0, 0)


def test_a_limit_that_is_raised_counts_at_once(at, limit):
    limit(memory=1)
    assert refusal(at(PUBLIC).add_note, content="xy") == OVER
    limit(memory=2)

    assert used(at(PUBLIC).add_note(content="xy")) == (2, 2, 100)


def test_the_budget_applies_to_the_final_state(at, limit):
    """Making room and using it is one call, whichever comes first."""
    limit(memory=10)
    at(PUBLIC).add_note(content="x" * 10, note_id=A)

    assert used(at(PUBLIC).edit_notes(edits=[add("y" * 10, B), delete(A)])) == (10, 10, 100)
    assert used(at(PUBLIC).edit_notes(edits=[delete(B), add("z" * 10, C)])) == (10, 10, 100)
    assert used(at(PUBLIC).edit_notes(edits=[add("12", D), update(C, "12345")])) == (10, 10, 100)
    assert refusal(at(PUBLIC).edit_notes, edits=[add("y" * 11), delete(C)]) == OVER


# What a refusal says.


def test_a_refusal_says_by_how_much_and_what_takes_the_room(at, limit):
    limit(memory=30)
    at(PUBLIC).add_note(content="twelve chars", note_id=A)
    at(INTERNAL).add_note(content="five!", note_id=B)
    at(INTERNAL).add_note(content="not of this tier", tier=USER)

    assert refused(at(INTERNAL).add_note, content="x" * 8) == note_pb2.BudgetExceeded(
        usage=note_pb2.Usage(tier=note_pb2.TIER_MEMORY, used_chars=20, limit_chars=30, percent=66),
        would_be_chars=31,
        over_by_chars=1,
        entries=[
            note_pb2.BudgetEntry(
                note_id=A,
                length_chars=12,
                preview="twelve chars",
                own_level=False,
                classification=classification_pb2.CLASSIFICATION_PUBLIC,
            ),
            note_pb2.BudgetEntry(
                note_id=B,
                length_chars=5,
                preview="five!",
                own_level=True,
                classification=classification_pb2.CLASSIFICATION_INTERNAL,
            ),
        ],
    )


def test_the_error_text_says_what_to_do(at, limit):
    limit(memory=1)

    assert failure_of(at(PUBLIC).add_note, content="xy").message.endswith("replace or remove an entry first")


def test_retrying_is_not_suggested(at, limit):
    """Clients retry RESOURCE_EXHAUSTED and UNAVAILABLE by themselves: a loop."""
    limit(memory=1)

    assert failure_of(at(PUBLIC).add_note, content="xy").code is grpc.StatusCode.FAILED_PRECONDITION


def test_the_ten_largest_notes_are_shown_largest_first(at, limit):
    limit(memory=111)
    for length in range(1, 13):
        at(PUBLIC).add_note(content="x" * length, note_id=str(uuid.UUID(int=length)))

    entries = refused(at(PUBLIC).add_note, content="y" * 99).entries

    assert [entry.length_chars for entry in entries] == list(range(12, 2, -1))
    assert [uuid.UUID(entry.note_id).int for entry in entries] == list(range(12, 2, -1))


@pytest.mark.parametrize("content", ["x" * 41, "\U0001f600" * 41, "e\u0301" * 20 + "x", "நினைவு" * 7])
def test_a_preview_has_the_first_40_code_points(at, limit, content):
    limit(memory=len(content))
    at(PUBLIC).add_note(content=content)

    (entry,) = refused(at(PUBLIC).add_note, content="y").entries

    assert (entry.length_chars, entry.preview) == (len(content), content[:40])


def test_a_shadowed_version_is_not_in_a_refusal(at, limit):
    limit(memory=20)
    at(PUBLIC).add_note(content="x" * 20, note_id=A)
    at(INTERNAL).update_note(content="own", note_id=A)

    entries = refused(at(INTERNAL).add_note, content="y" * 20).entries

    assert [(entry.preview, entry.classification) for entry in entries] == [("own", INTERNAL)]


def test_a_refusal_shows_the_notes_as_they_are_and_not_as_they_would_be(at, limit):
    """Nothing was changed: the ids of notes that were not added would help no one."""
    limit(memory=5)
    at(PUBLIC).add_note(content="12345", note_id=A)

    found = refused(at(PUBLIC).edit_notes, edits=[delete(A), add("x" * 6, B)])

    assert [(entry.note_id, entry.preview) for entry in found.entries] == [(A, "12345")]
    assert (found.usage.used_chars, found.would_be_chars, found.over_by_chars) == (5, 6, 1)


def test_over_by_counts_from_the_limit_also_when_usage_is_over_it_already(over):
    found = refused(over.add_note, content="x")

    assert (found.usage.used_chars, found.usage.percent, found.would_be_chars, found.over_by_chars) == (23, 230, 27, 17)


def test_a_whole_status_stays_under_4_kib(at, limit):
    """Ten entries of the widest characters, with the ids that clients choose: above 8 KiB clients see another error."""
    limit(memory=1_000_000)
    for _ in range(12):
        at(RESTRICTED).add_note(content="\U0010fffd" * 16_000 + str(uuid.uuid4()))
    limit(memory=0)

    outcome = failure_of(at(RESTRICTED).add_note, content="x")

    assert len(detail(outcome, note_pb2.BudgetExceeded).entries) == 10
    assert packed_status(outcome).ByteSize() < 4096
    assert sum(len(name) + len(value) for name, value in outcome.trailers) < 4096


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("rpc", ["AddNote", "UpdateNote", "EditNotes"])
def test_a_refusal_changes_nothing_but_writes_one_audit_row(service, label, rpc):
    session = service.session(label)
    service.host().update_agent(agent_id="alice", memory_settings={"memory_char_limit": 10})
    session.add_note(content="12345", note_id=A)
    requests: dict[str, dict[str, Any]] = {
        "AddNote": {"content": "123456"},
        "UpdateNote": {"note_id": A, "content": "x" * 11},
        "EditNotes": {"edits": [update(A, "1"), add("x" * 9, B), delete(A), add("12")]},
    }

    def kept():
        with service.database.as_owner() as owner:
            return [
                owner.execute(f"SELECT * FROM {label.role}.{table} WHERE kind = 2").fetchall()
                for table in ("item", "revision")
            ]

    before, log = kept(), events(service.host())

    assert refusal(session.call, rpc=rpc, **requests[rpc]) == OVER
    assert kept() == before
    (row,) = [event for event in events(service.host()) if event not in log]
    assert (row.method, row.outcome, row.classification, row.integrity, row.session_id, row.agent_id) == (
        rpc, "BUDGET_EXCEEDED", label.level, label.integrity, session.session_id, "alice"
    )  # fmt: skip


def repair(found, wanted):
    """What a caller that knows nothing but the refusal does: keep as much as it can of the largest own notes."""
    edits, room = [], found.over_by_chars
    for entry in found.entries:
        if room > 0 and entry.own_level:
            edits.append(delete(entry.note_id))
            room -= entry.length_chars + 3
        elif room > 0:
            shorter = max(1, entry.length_chars - room)
            edits.append(update(entry.note_id, entry.preview[:shorter]))
            room -= entry.length_chars - min(shorter, len(entry.preview))
    return [*edits, add(wanted)]


@pytest.mark.parametrize("own", [0, 1, 2, 3])
def test_a_refusal_is_enough_to_repair_it_with_one_call(at, limit, own):
    """Whether the notes in the way are the session's own, which it may delete, or lower ones, which it may shorten."""
    limit(memory=200)
    for number in range(3):
        session = at(CONFIDENTIAL if number < own else PUBLIC)
        session.add_note(content=f"note {number} " + "x" * 55)
    found = refused(at(CONFIDENTIAL).add_note, content="wanted " * 5)

    answer = at(CONFIDENTIAL).edit_notes(edits=repair(found, "wanted " * 5))

    assert answer.usage.used_chars <= 200
    assert "wanted " * 5 in contents(at(CONFIDENTIAL))
