"""Notes in the contract."""

from __future__ import annotations

from datetime import datetime

from muniment.v1 import note_pb2, note_service_pb2
from muniment_server.domain import text
from muniment_server.domain.budgets import Tier
from muniment_server.domain.errors import BudgetExceeded
from muniment_server.domain.notes import AddNote, DeleteNote, Note, NoteEdit, UpdateNote
from muniment_server.items.paging import etag
from muniment_server.items.wire import id_from_proto, label_to_proto, newer_to_proto, time_to_proto, usage_to_proto
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.notes.repository import NoteMatch


def tier_from_proto(tier: note_pb2.Tier.ValueType) -> Tier:
    """A tier. Unspecified means the agent's own notes."""
    return Tier(tier or Tier.MEMORY)


def edit_from_proto(message: note_service_pb2.NoteEdit, index: int, scope: SessionScope) -> NoteEdit:
    """One edit of a list. Validation has made sure that it is one of the three."""
    match message.WhichOneof("edit"):
        case "add":
            content = text.content(message.add.content, field=f"edits[{index}].add.content")
            return AddNote(id_from_proto(message.add.note_id) or str(scope.new_uuid()), content)
        case "update":
            content = text.content(message.update.content, field=f"edits[{index}].update.content")
            return UpdateNote(id_from_proto(message.update.note_id), content)
    return DeleteNote(id_from_proto(message.delete.note_id))


def note_to_proto(note: Note) -> note_pb2.Note:
    """A note."""
    return note_pb2.Note(
        note_id=note.note_id,
        tier=note_pb2.Tier.ValueType(note.tier),
        content=note.content,
        **label_to_proto(note.label),
        etag=etag(note.version),
        create_time=time_to_proto(note.create_time),
        update_time=time_to_proto(note.update_time),
        newer_below=newer_to_proto(note.newer_below),
    )


def result_to_proto(match: NoteMatch) -> note_service_pb2.NoteResult:
    """A result of a search."""
    return note_service_pb2.NoteResult(
        note=note_to_proto(match.note), score=match.score, snippet=match.snippet, relevance=match.relevance
    )


def budget_exceeded_to_proto(error: BudgetExceeded) -> note_pb2.BudgetExceeded:
    """What a session needs to make room."""
    return note_pb2.BudgetExceeded(
        usage=usage_to_proto(error.usage),
        would_be_chars=error.would_be_chars,
        over_by_chars=error.would_be_chars - error.usage.limit_chars,
        entries=[
            note_pb2.BudgetEntry(
                note_id=entry.note_id,
                length_chars=entry.length_chars,
                preview=entry.preview,
                own_level=entry.own_level,
                **label_to_proto(entry.label),
            )
            for entry in error.entries
        ],
    )


def position_of(note: Note) -> tuple[str, str]:
    """What a page token names: the note after which the list continues."""
    return note.create_time.isoformat(), note.note_id


def position_from(last: list[str] | None) -> tuple[datetime, str] | None:
    """The position that a page token names."""
    return (datetime.fromisoformat(last[0]), last[1]) if last else None
