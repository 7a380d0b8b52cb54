"""NoteService."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muniment.v1 import note_service_pb2 as pb
from muniment.v1 import note_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.budgets import Tier
from muniment_server.domain.errors import BudgetExceeded
from muniment_server.domain.notes import AddNote, DeleteNote, NoteEdit, UpdateNote
from muniment_server.items import paging
from muniment_server.items.wire import id_from_proto, joined, revealed_to_proto, usage_to_proto
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.notes import repository, wire
from muniment_server.notes.repository import EditedNotes
from muniment_server.search.search import Searcher


class NoteServicer(note_service_pb2_grpc.NoteServiceServicer):
    """Notes, as one session sees them. Every write is a list of edits."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def AddNote(self, request: pb.AddNoteRequest, context: CallContext) -> pb.AddNoteResponse:
        content = text.content(request.content)
        note_id = id_from_proto(request.note_id)
        edited = _edit(
            context,
            wire.tier_from_proto(request.tier),
            lambda scope: [AddNote(note_id or str(scope.new_uuid()), content)],
        )
        return pb.AddNoteResponse(note=wire.note_to_proto(edited.notes[0]), usage=usage_to_proto(edited.usage))

    def UpdateNote(self, request: pb.UpdateNoteRequest, context: CallContext) -> pb.UpdateNoteResponse:
        content = text.content(request.content)
        edit = UpdateNote(id_from_proto(request.note_id), content, paging.version_of(request.etag))
        edited = _edit(context, wire.tier_from_proto(request.tier), lambda _: [edit])
        return pb.UpdateNoteResponse(note=wire.note_to_proto(edited.notes[0]), usage=usage_to_proto(edited.usage))

    def DeleteNote(self, request: pb.DeleteNoteRequest, context: CallContext) -> pb.DeleteNoteResponse:
        edit = DeleteNote(id_from_proto(request.note_id), paging.version_of(request.etag))
        edited = _edit(context, wire.tier_from_proto(request.tier), lambda _: [edit])
        return pb.DeleteNoteResponse(**revealed_to_proto(edited.revealed[0]), usage=usage_to_proto(edited.usage))

    def SearchNotes(self, request: pb.SearchNotesRequest, context: CallContext) -> pb.SearchNotesResponse:
        query = text.query(request.query)
        tier = wire.tier_from_proto(request.tier)
        limit = paging.max_results(request.max_results)
        with context.session_scope() as scope:
            found = repository.search(
                scope, self._searcher, query, tier=tier, limit=limit, min_relevance=request.min_relevance
            )
        return pb.SearchNotesResponse(
            results=map(wire.result_to_proto, found.matches),
            usage=usage_to_proto(found.usage),
            classification=joined(match.note.label for match in found.matches),
            semantic=found.semantic,
            reranked=found.reranked,
        )

    def ListNotes(self, request: pb.ListNotesRequest, context: CallContext) -> pb.ListNotesResponse:
        tier = wire.tier_from_proto(request.tier)
        pager = context.pager(tier)
        after = wire.position_from(pager.last(request.page_token))
        limit = paging.page_size(request.page_size)
        with context.session_scope() as scope:
            page = repository.list_notes(scope, tier, after=after, limit=limit)
        return pb.ListNotesResponse(
            notes=map(wire.note_to_proto, page.notes),
            usage=usage_to_proto(page.usage),
            next_page_token=pager.token(*wire.position_of(page.notes[-1])) if page.more else "",
            classification=joined(note.label for note in page.notes),
        )

    def EditNotes(self, request: pb.EditNotesRequest, context: CallContext) -> pb.EditNotesResponse:
        edited = _edit(
            context,
            wire.tier_from_proto(request.tier),
            lambda scope: [wire.edit_from_proto(edit, index, scope) for index, edit in enumerate(request.edits)],
            validate_only=request.validate_only,
        )
        return pb.EditNotesResponse(
            notes=map(wire.note_to_proto, edited.notes),
            usage=usage_to_proto(edited.usage),
            classification=joined(note.label for note in edited.notes),
        )


def _edit(
    context: CallContext,
    tier: Tier,
    edits: Callable[[SessionScope], Sequence[NoteEdit]],
    *,
    validate_only: bool = False,
) -> EditedNotes:
    """Apply *edits*, which may need new ids. A budget that is exceeded goes to the caller with its details."""
    try:
        with context.session_scope() as scope:
            return repository.edit(scope, tier, edits(scope), validate_only=validate_only)
    except BudgetExceeded as error:
        error.detail = wire.budget_exceeded_to_proto(error)
        raise
