"""What a session sends and gets of notes."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import grpc
import pytest

import muniment
from muniment import AddNote, Classification, DeleteNote, Tier, UpdateNote, Usage
from muniment.v1 import note_service_pb2
from muniment.v1.classification_pb2 import CLASSIFICATION_CONFIDENTIAL, CLASSIFICATION_INTERNAL, CLASSIFICATION_PUBLIC
from muniment.v1.note_pb2 import TIER_MEMORY, TIER_USER
from tests.clients.python.scripted import error_info, status
from tests.support.examples import NOTE, NOTE_ID, USAGE

NOON = datetime.fromtimestamp(1_760_000_000, UTC)
TRAINS = "Ada travels by night train only"
USED = Usage(Tier.MEMORY, used_chars=31, limit_chars=2200, percent=1)


def test_a_note_is_added_as_given(server, session):
    session.add_note(TRAINS, tier=Tier.USER, note_id=NOTE_ID)

    expected = note_service_pb2.AddNoteRequest(content=TRAINS, tier=TIER_USER, note_id=NOTE_ID)
    assert [expected] == server.requests("AddNote")


def test_a_note_gets_an_id_of_its_own(server, session):
    session.add_note(TRAINS)
    session.add_note(TRAINS)

    first, second = server.requests("AddNote")
    assert UUID(first.note_id) != UUID(second.note_id)
    assert first.tier == TIER_MEMORY


def test_a_note_is_what_was_sent(session):
    note = muniment.Note(
        note_id=NOTE_ID,
        tier=Tier.MEMORY,
        content=TRAINS,
        classification=Classification.PUBLIC,
        etag="item-1",
        create_time=NOON,
        update_time=NOON,
    )
    expected = muniment.NoteWritten(note, USED)

    assert expected == session.add_note(TRAINS)
    assert expected == session.update_note(NOTE_ID, TRAINS)


def test_an_update_is_sent_as_given(server, session):
    session.update_note(NOTE_ID, "Vienna", tier=Tier.USER, etag="item-1")
    session.update_note(NOTE_ID, "Vienna")

    assert [
        note_service_pb2.UpdateNoteRequest(note_id=NOTE_ID, content="Vienna", tier=TIER_USER, etag="item-1"),
        note_service_pb2.UpdateNoteRequest(note_id=NOTE_ID, content="Vienna", tier=TIER_MEMORY),
    ] == server.requests("UpdateNote")


def test_a_deletion_says_what_it_reveals(server, session):
    server.script("DeleteNote", note_service_pb2.DeleteNoteResponse(revealed=CLASSIFICATION_INTERNAL, usage=USAGE))

    assert muniment.NoteDeleted(Classification.INTERNAL, USED) == session.delete_note(NOTE_ID, etag="item-1")
    assert muniment.NoteDeleted(None, USED) == session.delete_note(NOTE_ID, tier=Tier.USER)
    assert [(request.etag, request.tier) for request in server.requests("DeleteNote")] == [
        ("item-1", TIER_MEMORY),
        ("", TIER_USER),
    ]


def second_page_follows() -> note_service_pb2.ListNotesResponse:
    return note_service_pb2.ListNotesResponse(
        notes=[NOTE], usage=USAGE, next_page_token="second", classification=CLASSIFICATION_PUBLIC
    )


def test_notes_come_from_all_pages(server, session):
    server.script("ListNotes", second_page_follows())

    assert [note.content for note in session.list_notes(Tier.USER, page_size=1)] == [TRAINS, TRAINS]
    assert [(each.tier, each.page_size, each.page_token) for each in server.requests("ListNotes")] == [
        (TIER_USER, 1, ""),
        (TIER_USER, 1, "second"),
    ]


def test_a_taint_raised_between_two_pages_raises_taint_changed(server, session):
    server.script("ListNotes", second_page_follows(), status(grpc.StatusCode.ABORTED, error_info("TAINT_CHANGED")))
    notes = session.list_notes()

    assert next(notes).note_id == NOTE_ID
    with pytest.raises(muniment.TaintChanged):
        next(notes)


def test_a_page_carries_its_level_and_the_usage(server, session):
    answer = second_page_follows()
    answer.classification = CLASSIFICATION_CONFIDENTIAL
    server.script("ListNotes", answer)

    page = session.list_notes_page(page_token="first")

    assert (page.classification, page.usage, page.next_page_token) == (Classification.CONFIDENTIAL, USED, "second")
    assert [note.note_id for note in page] == [NOTE_ID]
    assert len(page) == 1


def test_a_search_gives_results_their_level_and_the_usage(server, session):
    found = session.search_notes("trains?", tier=Tier.USER, max_results=3)

    expected = note_service_pb2.SearchNotesRequest(query="trains?", tier=TIER_USER, max_results=3)
    assert [expected] == server.requests("SearchNotes")
    assert (found.classification, found.usage, found.semantic, found.reranked) == (
        Classification.PUBLIC,
        USED,
        True,
        True,
    )
    assert [(each.note.content, each.score, each.snippet, each.relevance) for each in found] == [
        (TRAINS, 1.5, "night train", 0.5)
    ]
    assert len(found) == 1


def test_edits_are_sent_in_their_order(server, session):
    edits = [DeleteNote(NOTE_ID), AddNote("Vienna", NOTE_ID), UpdateNote(NOTE_ID, "Graz")]

    session.edit_notes(iter(edits), tier=Tier.USER, validate_only=True)

    expected = note_service_pb2.EditNotesRequest(
        tier=TIER_USER,
        edits=[
            note_service_pb2.NoteEdit(delete=note_service_pb2.DeleteNoteEdit(note_id=NOTE_ID)),
            note_service_pb2.NoteEdit(add=note_service_pb2.AddNoteEdit(content="Vienna", note_id=NOTE_ID)),
            note_service_pb2.NoteEdit(update=note_service_pb2.UpdateNoteEdit(note_id=NOTE_ID, content="Graz")),
        ],
        validate_only=True,
    )
    assert [expected] == server.requests("EditNotes")


def test_an_added_note_of_several_gets_an_id_of_its_own(server, session):
    session.edit_notes([AddNote("Vienna"), AddNote("Graz")])

    (request,) = server.requests("EditNotes")
    assert len({UUID(edit.add.note_id) for edit in request.edits}) == 2


def test_edits_give_notes_their_level_and_the_usage(session):
    edited = session.edit_notes([AddNote(TRAINS)])

    assert [note.content for note in edited.notes] == [TRAINS]
    assert (edited.usage, edited.classification) == (USED, Classification.PUBLIC)


def test_an_invalid_edit_is_not_sent(server, session):
    with pytest.raises(TypeError, match="edit"):
        session.edit_notes(["Vienna"])

    assert server.asked == []


@pytest.mark.parametrize("tier", [0, 3, "MEMORY", None])
def test_an_invalid_tier_is_not_sent(server, session, tier):
    with pytest.raises(ValueError, match="Tier"):
        session.add_note(TRAINS, tier=tier)
    with pytest.raises(ValueError, match="Tier"):
        session.list_notes_page(tier)

    assert server.asked == []
