"""AddNote, UpdateNote and DeleteNote. Several edits at once are in test_notes_editing.py."""

from __future__ import annotations

import uuid

import pytest

from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PAIRS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    invalid,
    refusal,
)
from tests.support.labels import untrusted
from tests.support.services import failure_of

MEMORY, USER = 1, 2
ID, OTHER_ID = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
GONE = "NOT_FOUND NOTE_NOT_FOUND"
TAKEN = "ALREADY_EXISTS NOTE_EXISTS"
BELOW = "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"
STALE = "ABORTED ETAG_STALE"


def seen(session, tier=MEMORY):
    """The notes of a session: content by id."""
    return {note.note_id: note.content for note in session.list_notes(tier=tier).notes}


def recorded(host, method):
    """(level, outcome) of every event of a method."""
    return [(event.classification, event.outcome) for event in events(host) if event.method == method]


# AddNote.


@pytest.mark.parametrize("level", LEVELS)
def test_a_note_is_labeled_with_the_taint(at, level):
    added = at(level).add_note(content="text").note

    assert added.classification == level
    assert list(at(level).list_notes().notes) == [added]


@pytest.mark.parametrize(("written", "reader"), PAIRS)
def test_c01_a_note_is_seen_at_its_level_and_above(at, written, reader):
    at(written).add_note(content="text", note_id=ID)

    assert seen(at(reader)) == ({ID: "text"} if written <= reader else {})


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_added_after_a_raise_is_in_the_table_of_the_new_level(service, level):
    session = service.session(PUBLIC)
    session.add_note(content="before")
    service.host().raise_taint(session_id=session.session_id, taint=level)
    session.add_note(content="after")

    with service.database.as_owner() as owner:
        found = {
            each: [
                content
                for (content,) in owner.execute(f"SELECT content FROM {untrusted(each).role}.item WHERE kind = 2")
            ]
            for each in (PUBLIC, level)
        }
    assert found == ({PUBLIC: ["before"]} | {level: ["after"]} if level > PUBLIC else {PUBLIC: ["before", "after"]})


def test_an_id_is_made_for_a_note_that_has_none(at):
    made = [at(PUBLIC).add_note(content=content).note.note_id for content in ("one", "two")]

    assert [uuid.UUID(note_id).version for note_id in made] == [4, 4]
    assert len(set(made)) == 2


@pytest.mark.parametrize("spelling", [str(uuid.UUID(int=255)).upper(), str(uuid.UUID(int=255))])
def test_an_id_is_the_same_in_capitals(at, spelling):
    at(PUBLIC).add_note(content="text", note_id=spelling)

    assert seen(at(PUBLIC)) == {str(uuid.UUID(int=255)): "text"}
    at(PUBLIC).update_note(content="new", note_id=spelling.upper())
    at(PUBLIC).delete_note(note_id=spelling.upper())
    assert seen(at(PUBLIC)) == {}


@pytest.mark.parametrize("note_id", ["x", "1", ID[:-1], f"{{{ID}}}", ID.replace("-", ""), f"urn:uuid:{ID}", f" {ID}"])
def test_an_id_that_is_not_a_uuid_is_refused(at, note_id):
    assert invalid(at(PUBLIC).add_note, content="text", note_id=note_id) == ["note_id"]
    assert invalid(at(PUBLIC).update_note, content="text", note_id=note_id) == ["note_id"]
    assert invalid(at(PUBLIC).delete_note, note_id=note_id) == ["note_id"]


def test_an_update_and_a_delete_need_an_id(at):
    assert invalid(at(PUBLIC).update_note, content="text") == ["note_id"]
    assert invalid(at(PUBLIC).delete_note) == ["note_id"]


def test_content_is_kept_byte_for_byte(at):
    content = "e\u0301 é \r\n\t \u202e\ufeff\x01 நினைவு 👩\u200d💻 \U0010ffff\n§\n═══ "
    at(PUBLIC).add_note(content=content, note_id=ID)

    assert seen(at(PUBLIC)) == {ID: content}


@pytest.fixture
def roomy(at, host):
    """A session whose agent has the largest budgets."""
    session = at(PUBLIC)
    host.update_agent(agent_id="alice", memory_settings={"memory_char_limit": 1_000_000, "user_char_limit": 1_000_000})
    return session


@pytest.mark.parametrize("content", ["x", "x" * 65536, "€" * 21845])
def test_content_has_up_to_64_kib(roomy, content):
    assert roomy.add_note(content=content, note_id=ID).note.content == content
    assert roomy.update_note(content=content[:-1] + "y", note_id=ID).note.content == content[:-1] + "y"


@pytest.mark.parametrize("content", ["", "x" * 65537, "€" * 21846, "a\0b"])
def test_other_content_is_refused(roomy, content):
    roomy.add_note(content="text", note_id=ID)

    assert invalid(roomy.add_note, content=content) == ["content"]
    assert invalid(roomy.update_note, content=content, note_id=ID) == ["content"]
    assert seen(roomy) == {ID: "text"}


@pytest.mark.parametrize("level", LEVELS)
def test_an_addition_may_be_repeated(at, level):
    """With an id the answer to the repetition is the same, byte for byte."""
    once = at(level).observe("AddNote", content="text", note_id=ID)

    assert at(level).observe("AddNote", content="text", note_id=ID) == once


def test_an_addition_with_an_id_that_has_another_text_is_refused(at):
    at(PUBLIC).add_note(content="text", note_id=ID)

    assert refusal(at(PUBLIC).add_note, content="other", note_id=ID) == TAKEN
    assert seen(at(PUBLIC)) == {ID: "text"}


@pytest.mark.parametrize(("first", "second"), [(MEMORY, USER), (USER, MEMORY)])
def test_an_addition_with_an_id_of_the_other_tier_is_refused(at, first, second):
    at(PUBLIC).add_note(content="text", note_id=ID, tier=first)

    assert refusal(at(PUBLIC).add_note, content="text", note_id=ID, tier=second) == TAKEN


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_addition_with_an_id_and_text_of_a_lower_note_returns_that(at, low, high):
    below = at(low).add_note(content="text", note_id=ID).note

    assert at(high).add_note(content="text", note_id=ID).note == below
    assert refusal(at(high).add_note, content="other", note_id=ID) == TAKEN


def without_what_chance_makes(response):
    """A response without its etag and times."""
    for field in ("etag", "create_time", "update_time"):
        response.note.ClearField(field)
    return response


@pytest.mark.parametrize(("low", "high"), UP)
@pytest.mark.parametrize("tier", [MEMORY, USER])
def test_c10_the_answer_to_an_addition_is_the_same_whether_or_not_its_id_exists_above(at, session, low, high, tier):
    """Whatever is under the id: the same text or another, in the same tier or the other."""
    at(high).add_note(content="high", note_id=ID, tier=tier)
    elsewhere = session(low, agent_id="bob")

    above = at(low).add_note(content="low", note_id=ID)
    alone = elsewhere.add_note(content="low", note_id=ID)

    assert without_what_chance_makes(above) == without_what_chance_makes(alone)
    assert seen(at(high), tier) == {ID: "high"}


@pytest.mark.parametrize("level", LEVELS)
def test_an_exact_duplicate_is_the_note_that_is_there(at, level):
    first = at(level).add_note(content="text", note_id=ID)

    assert at(level).add_note(content="text", note_id=OTHER_ID) == at(level).add_note(content="text") == first


def test_a_duplicate_in_the_other_tier_is_a_note_of_its_own(at):
    at(PUBLIC).add_note(content="text", tier=MEMORY)
    at(PUBLIC).add_note(content="text", tier=USER)

    assert [len(seen(at(PUBLIC), tier)) for tier in (MEMORY, USER)] == [1, 1]


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_duplicate_of_a_lower_note_is_a_note_of_its_own(at, low, high):
    at(low).add_note(content="text")
    added = at(high).add_note(content="text").note

    assert added.classification == high
    assert list(seen(at(high)).values()) == ["text", "text"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_duplicate_of_a_higher_note_is_a_note_of_its_own(at, low, high):
    at(high).add_note(content="text", note_id=ID)

    assert at(low).add_note(content="text", note_id=OTHER_ID).note.note_id == OTHER_ID


def test_a_duplicate_of_a_note_that_is_shadowed_is_a_note_of_its_own(at):
    """A session finds duplicates among what it sees only, and of its own level."""
    at(PUBLIC).add_note(content="text", note_id=ID)
    at(INTERNAL).update_note(content="new", note_id=ID)

    assert at(INTERNAL).add_note(content="text", note_id=OTHER_ID).note.note_id == OTHER_ID


def test_over_a_deleted_id_a_new_note_starts(at):
    first = at(PUBLIC).add_note(content="text", note_id=ID).note
    at(PUBLIC).delete_note(note_id=ID)
    second = at(PUBLIC).add_note(content="other", note_id=ID, tier=USER).note

    assert second.create_time.ToDatetime() > first.create_time.ToDatetime()
    assert second.create_time == second.update_time
    assert second.etag[:21] != first.etag[:21]
    assert (seen(at(PUBLIC), MEMORY), seen(at(PUBLIC), USER)) == ({}, {ID: "other"})


# UpdateNote.


def test_an_update_replaces_the_content_and_keeps_the_create_time(at):
    first = at(PUBLIC).add_note(content="one", note_id=ID).note
    second = at(PUBLIC).update_note(content="two", note_id=ID).note

    assert (second.content, second.create_time, second.note_id) == ("two", first.create_time, ID)
    assert second.update_time.ToDatetime() > first.update_time.ToDatetime()
    assert second.etag != first.etag


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_update_from_above_makes_a_version_that_shadows_the_lower_one(at, low, high):
    """C11: the lower session's note is untouched, whatever it asks for."""
    below = at(low).add_note(content="low", note_id=ID).note
    before = at(low).list_notes()
    own = at(high).update_note(content="high", note_id=ID).note

    assert (own.classification, own.content) == (high, "high")
    assert own.etag[:21] != below.etag[:21]
    assert seen(at(high)) == {ID: "high"}
    assert at(low).list_notes() == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_version_made_over_a_lower_one_inherits_its_create_time(at, low, high):
    below = at(low).add_note(content="low", note_id=ID).note
    own = at(high).update_note(content="high", note_id=ID).note
    again = at(high).update_note(content="higher", note_id=ID).note

    assert own.create_time == again.create_time == below.create_time
    assert own.update_time.ToDatetime() > below.update_time.ToDatetime()


def test_a_version_made_over_several_inherits_from_the_one_it_shadows(at):
    first = at(CONFIDENTIAL).add_note(content="c", note_id=ID).note
    second = at(PUBLIC).add_note(content="p", note_id=ID).note
    own = at(RESTRICTED).update_note(content="r", note_id=ID).note

    assert own.create_time == first.create_time != second.create_time


def test_a_version_that_is_older_than_the_lower_one_keeps_its_own_create_time(at):
    """A low session that adds the id afterwards moves nothing above it."""
    own = at(RESTRICTED).add_note(content="high", note_id=ID).note
    at(PUBLIC).add_note(content="low", note_id=ID)

    assert at(RESTRICTED).update_note(content="higher", note_id=ID).note.create_time == own.create_time


@pytest.mark.parametrize("level", LEVELS)
def test_an_update_that_changes_nothing_returns_the_stored_version(at, host, level):
    first = at(level).add_note(content="text", note_id=ID)

    assert at(level).update_note(content="text", note_id=ID).note == first.note
    assert recorded(host, "UpdateNote") == []


def test_an_update_from_above_with_the_same_text_makes_a_version_too(at):
    """It says: this text, at my level, whatever becomes of the one below."""
    at(PUBLIC).add_note(content="text", note_id=ID)
    at(INTERNAL).update_note(content="text", note_id=ID)
    at(PUBLIC).delete_note(note_id=ID)

    assert seen(at(INTERNAL)) == {ID: "text"}


def test_an_update_into_a_duplicate_is_allowed(at):
    at(PUBLIC).add_note(content="one", note_id=ID)
    at(PUBLIC).add_note(content="two", note_id=OTHER_ID)
    at(PUBLIC).update_note(content="one", note_id=OTHER_ID)

    assert seen(at(PUBLIC)) == {ID: "one", OTHER_ID: "one"}


@pytest.mark.parametrize(("seen_at", "level"), [(low, high) for low, high in PAIRS if low <= high])
def test_an_etag_is_checked_against_the_version_that_is_seen(at, seen_at, level):
    etag = at(seen_at).add_note(content="one", note_id=ID).note.etag

    updated = at(level).update_note(content="two", note_id=ID, etag=etag).note

    assert (updated.content, updated.classification) == ("two", level)


@pytest.mark.parametrize("content", ["new", "one", "two"])
def test_a_stale_etag_is_refused_and_recorded(at, host, content):
    """Even with the text that is stored: two equal increments are two."""
    stale = at(INTERNAL).add_note(content="one", note_id=ID).note.etag
    at(INTERNAL).update_note(content="two", note_id=ID)

    assert refusal(at(INTERNAL).update_note, content=content, note_id=ID, etag=stale) == STALE
    assert seen(at(INTERNAL)) == {ID: "two"}
    assert recorded(host, "UpdateNote") == [(INTERNAL, "OK"), (INTERNAL, "ETAG_STALE")]


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_etag_of_a_shadowed_version_is_stale(at, low, high):
    shadowed = at(low).add_note(content="low", note_id=ID).note.etag
    at(high).update_note(content="high", note_id=ID)

    assert refusal(at(high).update_note, content="new", note_id=ID, etag=shadowed) == STALE
    assert refusal(at(high).delete_note, note_id=ID, etag=shadowed) == STALE


@pytest.mark.parametrize(("low", "high"), UP)
def test_c15_the_etag_of_a_higher_version_is_as_stale_as_one_that_never_existed(at, low, high):
    at(low).add_note(content="low", note_id=ID)
    above = at(high).update_note(content="high", note_id=ID).note.etag
    elsewhere = at(low).add_note(content="other").note.etag

    for call, fields in ((at(low).update_note, {"content": "x"}), (at(low).delete_note, {})):
        assert failure_of(call, note_id=ID, etag=above, **fields) == failure_of(
            call, note_id=ID, etag=elsewhere, **fields
        )


@pytest.mark.parametrize("etag", ["x", "*", 'W/"1"', "e" * 65, "நினைவு"])
def test_a_malformed_etag_is_refused(at, etag):
    assert invalid(at(PUBLIC).update_note, content="x", note_id=ID, etag=etag) == ["etag"]
    assert invalid(at(PUBLIC).delete_note, note_id=ID, etag=etag) == ["etag"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c13_a_note_that_exists_only_above_looks_like_none(at, low, high):
    """Byte for byte, for update and delete, with etag and without, in either tier."""
    etag = at(high).add_note(content="high", note_id=ID).note.etag

    for call, fields in ((at(low).update_note, {"content": "x"}), (at(low).delete_note, {})):
        outcomes = {
            failure_of(call, note_id=note_id, etag=given, tier=tier, **fields)
            for note_id in (ID, OTHER_ID)
            for given in ("", etag)
            for tier in (MEMORY, USER)
        }
        assert len(outcomes) == 1
    assert seen(at(high)) == {ID: "high"}


def test_the_note_of_another_agent_or_tenant_looks_like_none(shared, session):
    session(PUBLIC).add_note(content="text", note_id=ID)

    for stranger in (session(RESTRICTED, agent_id="bob"), shared.session(RESTRICTED, tenant="elsewhere")):
        for call, fields in ((stranger.update_note, {"content": "x"}), (stranger.delete_note, {})):
            assert failure_of(call, note_id=ID, **fields) == failure_of(call, note_id=OTHER_ID, **fields)
        assert seen(stranger) == {}
    assert seen(session(PUBLIC)) == {ID: "text"}


# DeleteNote.


@pytest.mark.parametrize("level", LEVELS)
def test_a_deleted_note_is_gone(at, level):
    at(level).add_note(content="text", note_id=ID)

    assert at(level).delete_note(note_id=ID).revealed == 0
    assert seen(at(level)) == {}


def test_a_second_delete_finds_nothing(at):
    at(PUBLIC).add_note(content="text", note_id=ID)
    at(PUBLIC).delete_note(note_id=ID)

    assert refusal(at(PUBLIC).delete_note, note_id=ID) == GONE
    assert refusal(at(PUBLIC).update_note, note_id=ID, content="x") == GONE


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_note_cannot_be_deleted_even_the_second_time(at, host, low, high):
    etag = at(low).add_note(content="low", note_id=ID).note.etag
    other = at(low).add_note(content="other").note.etag

    assert [refusal(at(high).delete_note, note_id=ID, etag=given) for given in ("", etag, other, "")] == [BELOW] * 4
    assert seen(at(low))[ID] == "low"
    assert recorded(host, "DeleteNote") == [(high, "WRITE_LEVEL_MISMATCH")] * 4


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_delete_says_at_which_level_a_lower_version_is_seen_again(at, low, high):
    at(low).add_note(content="low", note_id=ID)
    at(high).update_note(content="high", note_id=ID)

    assert at(high).delete_note(note_id=ID).revealed == low
    assert seen(at(high)) == {ID: "low"}
    assert refusal(at(high).delete_note, note_id=ID) == BELOW


def test_a_delete_reveals_the_highest_of_the_lower_versions(at):
    at(PUBLIC).add_note(content="PUBLIC", note_id=ID)
    for level in LEVELS[1:]:
        at(level).update_note(content=level.name, note_id=ID)

    assert [at(level).delete_note(note_id=ID).revealed for level in reversed(LEVELS)] == [3, 2, 1, 0]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c18_a_low_delete_leaves_the_higher_version(at, low, high):
    at(low).add_note(content="low", note_id=ID)
    at(high).update_note(content="high", note_id=ID)

    assert at(low).delete_note(note_id=ID).revealed == 0
    assert seen(at(high)) == {ID: "high"}


def test_a_delete_may_reveal_a_version_of_the_other_tier(at):
    """Two levels chose one id, unknown to each other: the answer says what is seen again, wherever it is."""
    at(INTERNAL).add_note(content="high", note_id=ID, tier=USER)
    at(PUBLIC).add_note(content="low", note_id=ID, tier=MEMORY)

    assert (seen(at(INTERNAL), MEMORY), seen(at(INTERNAL), USER)) == ({}, {ID: "high"})
    assert at(INTERNAL).delete_note(note_id=ID, tier=USER).revealed == PUBLIC
    assert (seen(at(INTERNAL), MEMORY), seen(at(INTERNAL), USER)) == ({ID: "low"}, {})


@pytest.mark.parametrize("level", LEVELS)
def test_a_delete_with_the_current_etag_deletes(at, level):
    etag = at(level).add_note(content="text", note_id=ID).note.etag
    at(level).delete_note(note_id=ID, etag=etag)

    assert seen(at(level)) == {}


def test_a_delete_with_a_stale_etag_is_refused_and_recorded(at, host):
    stale = at(INTERNAL).add_note(content="1", note_id=ID).note.etag
    at(INTERNAL).update_note(content="2", note_id=ID)

    assert refusal(at(INTERNAL).delete_note, note_id=ID, etag=stale) == STALE
    assert seen(at(INTERNAL)) == {ID: "2"}
    assert recorded(host, "DeleteNote") == [(INTERNAL, "ETAG_STALE")]


def test_versions_are_kept_for_audit(service):
    session = service.session(PUBLIC)
    session.add_note(content="one", note_id=ID)
    session.update_note(content="two", note_id=ID)
    session.delete_note(note_id=ID)
    session.add_note(content="three", note_id=ID)

    with service.database.as_owner() as owner:
        ledger = owner.execute(
            "SELECT revision, content FROM muniment_public.revision WHERE name = %s ORDER BY update_time", [ID]
        ).fetchall()
        rows = owner.execute(
            "SELECT content, delete_time IS NULL FROM muniment_public.item WHERE name = %s ORDER BY update_time", [ID]
        ).fetchall()
    assert ledger == [(1, "one"), (2, "two"), (1, "three")]
    assert rows == [("two", False), ("three", True)]


# What is recorded.


@pytest.mark.parametrize("level", LEVELS)
def test_each_write_of_a_note_is_one_event_at_the_level_of_the_session(at, host, level):
    session = at(level)
    session.add_note(content="one", note_id=ID)
    session.update_note(content="two", note_id=ID)
    session.delete_note(note_id=ID)

    found = [event for event in events(host) if event.session_id == session.session_id and event.kind]

    assert [(event.method, event.classification, event.outcome, event.kind, event.revision) for event in found] == [
        ("AddNote", level, "OK", 2, 1),
        ("UpdateNote", level, "OK", 2, 2),
        ("DeleteNote", level, "OK", 2, 2),
    ]
    assert len({event.item_id for event in found}) == 1


def test_what_is_kept_is_not_recorded(at, host):
    """An id that is there already, a duplicate, a lower note: nothing was written."""
    at(PUBLIC).add_note(content="text", note_id=ID)
    before = events(host)
    at(PUBLIC).add_note(content="text", note_id=ID)
    at(PUBLIC).add_note(content="text")
    at(PUBLIC).update_note(content="text", note_id=ID)

    assert events(host) == before


def test_a_note_that_is_not_there_or_taken_is_not_recorded(at, host):
    at(PUBLIC).add_note(content="text", note_id=ID)
    before = events(host)
    failure_of(at(PUBLIC).add_note, content="other", note_id=ID)
    failure_of(at(PUBLIC).update_note, content="other", note_id=OTHER_ID)
    failure_of(at(PUBLIC).delete_note, note_id=OTHER_ID)
    failure_of(at(PUBLIC).delete_note, note_id=ID, tier=USER)

    assert events(host) == before


@pytest.mark.parametrize(
    ("rpc", "fields"),
    [
        ("AddNote", {"content": "new"}),
        ("UpdateNote", {"note_id": ID, "content": "new"}),
        ("DeleteNote", {"note_id": ID}),
        ("EditNotes", {"edits": [{"add": {"content": "new"}}, {"delete": {"note_id": ID}}]}),
        ("AddNote", {"content": "x" * 3000}),
    ],
)
def test_no_audit_row_no_effect(service, rpc, fields):
    """Not even a refusal that ought to be recorded is sent."""
    session = service.session(PUBLIC)
    session.add_note(content="text", note_id=ID)
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_public.audit FROM muniment_public")
        outcome = session.observe(rpc, **fields)
        owner.execute("GRANT INSERT ON muniment_public.audit TO muniment_public")

    assert outcome.code.name == "INTERNAL"
    assert seen(session) == {ID: "text"}
