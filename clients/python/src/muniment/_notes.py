"""Calls for notes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from muniment import _convert
from muniment._calls import Calls
from muniment._listing import Listing
from muniment.v1 import note_pb2
from muniment.v1 import note_service_pb2 as pb
from muniment.v1.note_service_pb2_grpc import NoteServiceStub
from muniment.values import (
    AddNote,
    Classification,
    DeleteNote,
    Note,
    NoteDeleted,
    NoteEdit,
    NotePage,
    NoteResult,
    NoteSearchResults,
    NotesEdited,
    NoteWritten,
    Tier,
    UpdateNote,
)


class Notes:
    """Notes in two budgeted tiers, as one session sees them. Every response contains the usage.

    A budget refuses (BudgetExceeded); it never truncates or evicts.
    """

    _calls: Calls

    @cached_property
    def _notes(self) -> NoteServiceStub:
        return NoteServiceStub(self._calls.channel)

    def add_note(
        self, content: str, *, tier: Tier = Tier.MEMORY, note_id: str | None = None, timeout: float | None = None
    ) -> NoteWritten:
        """Add a note. If the tier has a note with the same content at the same level, return that one.

        *content* is 1 byte to 64 KiB. *note_id* is a UUID; None: a new one. NoteExists: another
        note has that id. BudgetExceeded: see its `entries`. TierDisabled: the host has disabled the tier.
        """
        request = _convert.message(
            pb.AddNoteRequest, content=content, tier=_convert.tier_to_proto(tier), note_id=_convert.id_to_proto(note_id)
        )
        return _written(self._calls(self._notes.AddNote, request, timeout))

    def update_note(
        self,
        note_id: str,
        content: str,
        *,
        tier: Tier = Tier.MEMORY,
        etag: str | None = None,
        timeout: float | None = None,
    ) -> NoteWritten:
        """Replace the content of a note. A note of a lower level gets an own-level version, which shadows it.

        With *etag*, only that version is replaced; otherwise EtagStale. NoteNotFound: none is visible in this tier.
        """
        request = _convert.message(
            pb.UpdateNoteRequest, note_id=note_id, content=content, tier=_convert.tier_to_proto(tier), etag=etag or ""
        )
        return _written(self._calls(self._notes.UpdateNote, request, timeout))

    def delete_note(
        self, note_id: str, *, tier: Tier = Tier.MEMORY, etag: str | None = None, timeout: float | None = None
    ) -> NoteDeleted:
        """Delete the session's own-level version; return the level of the lower version that is now visible, if any.

        WriteLevelMismatch: only a lower version is visible. NoteNotFound: none is.
        """
        request = _convert.message(
            pb.DeleteNoteRequest, note_id=note_id, tier=_convert.tier_to_proto(tier), etag=etag or ""
        )
        response = self._calls(self._notes.DeleteNote, request, timeout)
        return NoteDeleted(revealed=_convert.revealed(response), usage=_convert.usage(response.usage))

    def list_notes(
        self, tier: Tier = Tier.MEMORY, *, page_size: int = 0, timeout: float | None = None
    ) -> Listing[Note]:
        """The visible notes of a tier, oldest first; pages are fetched as needed.

        *timeout* is for each page. TaintChanged: the taint was raised between two pages; see `Listing.all`.
        """
        return Listing(
            lambda token: self.list_notes_page(tier, page_size=page_size, page_token=token, timeout=timeout),
            lambda page: page.notes,
        )

    def list_notes_page(
        self,
        tier: Tier = Tier.MEMORY,
        *,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> NotePage:
        """One page, with the highest level in it and the usage. A *page_size* of 0 means 50; the most is 250."""
        request = _convert.message(
            pb.ListNotesRequest, tier=_convert.tier_to_proto(tier), page_size=page_size, page_token=page_token
        )
        return _page(self._calls(self._notes.ListNotes, request, timeout))

    def search_notes(
        self,
        query: str,
        *,
        tier: Tier = Tier.MEMORY,
        max_results: int = 0,
        min_relevance: float = 0,
        timeout: float | None = None,
    ) -> NoteSearchResults:
        """The notes of a tier that match a query in plain language, best first.

        *query* is 1 to 1024 code points; it has no syntax. A *max_results* of 0 means 10; the most
        is 100. Results whose relevance is below *min_relevance*, from 0 to 1, are left out.
        """
        request = _convert.message(
            pb.SearchNotesRequest,
            query=query,
            tier=_convert.tier_to_proto(tier),
            max_results=max_results,
            min_relevance=min_relevance,
        )
        return _search_results(self._calls(self._notes.SearchNotes, request, timeout))

    def edit_notes(
        self,
        edits: Iterable[NoteEdit],
        *,
        tier: Tier = Tier.MEMORY,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> NotesEdited:
        """Make 1 to 100 edits in order, all or none. The budget applies to the result of all edits.

        With *validate_only*, the server only checks them, and writes nothing.
        """
        request = _convert.message(
            pb.EditNotesRequest,
            tier=_convert.tier_to_proto(tier),
            edits=map(_edit_to_proto, edits),
            validate_only=validate_only,
        )
        return _edited(self._calls(self._notes.EditNotes, request, timeout))


def _edit_to_proto(edit: NoteEdit) -> pb.NoteEdit:
    match edit:
        case AddNote():
            note_id = _convert.id_to_proto(edit.note_id)
            return _convert.message(
                pb.NoteEdit, add=_convert.message(pb.AddNoteEdit, content=edit.content, note_id=note_id)
            )
        case UpdateNote():
            return _convert.message(
                pb.NoteEdit, update=_convert.message(pb.UpdateNoteEdit, note_id=edit.note_id, content=edit.content)
            )
        case DeleteNote():
            return _convert.message(pb.NoteEdit, delete=_convert.message(pb.DeleteNoteEdit, note_id=edit.note_id))
    raise TypeError("an edit must be an AddNote, an UpdateNote or a DeleteNote")


def _note(message: note_pb2.Note) -> Note:
    return Note(
        note_id=message.note_id,
        tier=Tier(message.tier),
        content=message.content,
        classification=Classification(message.classification),
        etag=message.etag,
        create_time=_convert.utc(message.create_time),
        update_time=_convert.utc(message.update_time),
        newer_below=_convert.newer_below(message),
        integrity=_convert.integrity(message.integrity),
    )


def _written(message: pb.AddNoteResponse | pb.UpdateNoteResponse) -> NoteWritten:
    return NoteWritten(note=_note(message.note), usage=_convert.usage(message.usage))


def _page(message: pb.ListNotesResponse) -> NotePage:
    return NotePage(
        notes=tuple(map(_note, message.notes)),
        usage=_convert.usage(message.usage),
        next_page_token=message.next_page_token,
        classification=Classification(message.classification),
        integrity=_convert.integrity(message.integrity),
    )


def _search_results(message: pb.SearchNotesResponse) -> NoteSearchResults:
    return NoteSearchResults(
        results=tuple(map(_result, message.results)),
        usage=_convert.usage(message.usage),
        classification=Classification(message.classification),
        semantic=message.semantic,
        reranked=message.reranked,
        integrity=_convert.integrity(message.integrity),
    )


def _result(message: pb.NoteResult) -> NoteResult:
    return NoteResult(
        note=_note(message.note), score=message.score, snippet=message.snippet, relevance=message.relevance
    )


def _edited(message: pb.EditNotesResponse) -> NotesEdited:
    return NotesEdited(
        notes=tuple(map(_note, message.notes)),
        usage=_convert.usage(message.usage),
        classification=Classification(message.classification),
        integrity=_convert.integrity(message.integrity),
    )
