"""NoteService."""

from __future__ import annotations

from datetime import datetime

from muniment.v1 import note_service_pb2 as pb
from muniment.v1 import note_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.notes import AddNote, DeleteNote, NoteEdit, UpdateNote
from muniment_server.domain.records import Note
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import SessionView, Store


class NoteServicer(note_service_pb2_grpc.NoteServiceServicer):
    """Notes, as one session sees them. Every write is a list of edits."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def AddNote(self, request: pb.AddNoteRequest, context: CallContext) -> pb.AddNoteResponse:
        content = text.content(request.content)
        tier = convert.tier_from_proto(request.tier)
        with self._store.as_session(context.session, context.call) as view:
            note_id = convert.id_from_proto(request.note_id) or view.new_id()
            edited = view.notes.edit(tier, [AddNote(note_id, content)])
        return pb.AddNoteResponse(
            note=convert.note_to_proto(edited.notes[0]), usage=convert.usage_to_proto(edited.usage)
        )

    def UpdateNote(self, request: pb.UpdateNoteRequest, context: CallContext) -> pb.UpdateNoteResponse:
        content = text.content(request.content)
        tier = convert.tier_from_proto(request.tier)
        edit = UpdateNote(convert.id_from_proto(request.note_id), content, paging.version_of(request.etag))
        with self._store.as_session(context.session, context.call) as view:
            edited = view.notes.edit(tier, [edit])
        return pb.UpdateNoteResponse(
            note=convert.note_to_proto(edited.notes[0]), usage=convert.usage_to_proto(edited.usage)
        )

    def DeleteNote(self, request: pb.DeleteNoteRequest, context: CallContext) -> pb.DeleteNoteResponse:
        tier = convert.tier_from_proto(request.tier)
        edit = DeleteNote(convert.id_from_proto(request.note_id), paging.version_of(request.etag))
        with self._store.as_session(context.session, context.call) as view:
            edited = view.notes.edit(tier, [edit])
        return pb.DeleteNoteResponse(
            revealed=convert.level_to_proto(edited.revealed[0]), usage=convert.usage_to_proto(edited.usage)
        )

    def SearchNotes(self, request: pb.SearchNotesRequest, context: CallContext) -> pb.SearchNotesResponse:
        query = text.query(request.query)
        tier = convert.tier_from_proto(request.tier)
        limit = paging.max_results(request.max_results)
        with self._store.as_session(context.session, context.call) as view:
            results, usage, semantic = view.notes.search(query, tier=tier, limit=limit)
        return pb.SearchNotesResponse(
            results=map(convert.note_result_to_proto, results),
            usage=convert.usage_to_proto(usage),
            classification=convert.join(result.note.classification for result in results),
            semantic=semantic,
        )

    def ListNotes(self, request: pb.ListNotesRequest, context: CallContext) -> pb.ListNotesResponse:
        tier = convert.tier_from_proto(request.tier)
        pager = context.pager(tier)
        last = pager.last(request.page_token)
        with self._store.as_session(context.session, context.call) as view:
            page = view.notes.list(
                tier,
                after=(datetime.fromisoformat(last[0]), last[1]) if last else None,
                limit=paging.page_size(request.page_size),
            )
        return pb.ListNotesResponse(
            notes=map(convert.note_to_proto, page.notes),
            usage=convert.usage_to_proto(page.usage),
            next_page_token=pager.token(*_position(page.notes[-1])) if page.more else "",
            classification=convert.join(note.classification for note in page.notes),
        )

    def EditNotes(self, request: pb.EditNotesRequest, context: CallContext) -> pb.EditNotesResponse:
        tier = convert.tier_from_proto(request.tier)
        with self._store.as_session(context.session, context.call) as view:
            edits = [_edit(edit, index, view) for index, edit in enumerate(request.edits)]
            edited = view.notes.edit(tier, edits, validate_only=request.validate_only)
        return pb.EditNotesResponse(
            notes=map(convert.note_to_proto, edited.notes),
            usage=convert.usage_to_proto(edited.usage),
            classification=convert.join(note.classification for note in edited.notes),
        )


def _position(note: Note) -> tuple[str, str]:
    return note.create_time.isoformat(), note.note_id


def _edit(message: pb.NoteEdit, index: int, view: SessionView) -> NoteEdit:
    """One edit of a list. The contract's rules have made sure that it is one of the three."""
    match message.WhichOneof("edit"):
        case "add":
            content = text.content(message.add.content, field=f"edits[{index}].add.content")
            return AddNote(convert.id_from_proto(message.add.note_id) or view.new_id(), content)
        case "update":
            content = text.content(message.update.content, field=f"edits[{index}].update.content")
            return UpdateNote(convert.id_from_proto(message.update.note_id), content)
    return DeleteNote(convert.id_from_proto(message.delete.note_id))
