# Generated from ../_notes.py: make aio.
"""Calls for notes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from muniment import _convert
from muniment._notes import _edit_to_proto, _edited, _page, _search_results, _written
from muniment.aio._calls import Calls
from muniment.aio._listing import Listing
from muniment.v1 import note_service_pb2 as pb
from muniment.v1.note_service_pb2_grpc import NoteServiceStub
from muniment.values import (
    Note,
    NoteDeleted,
    NoteEdit,
    NotePage,
    NoteSearchResults,
    NotesEdited,
    NoteWritten,
    Tier,
)

if TYPE_CHECKING:
    from muniment.v1.note_service_pb2_grpc import NoteServiceAsyncStub


class Notes:
    """Notes in two budgeted tiers, as one session sees them. Every response contains the usage.

    A budget refuses (BudgetExceeded); it never truncates or evicts.
    """

    _calls: Calls

    @cached_property
    def _notes(self) -> NoteServiceAsyncStub:
        return NoteServiceStub(self._calls.channel)

    async def add_note(
        self, content: str, *, tier: Tier = Tier.MEMORY, note_id: str | None = None, timeout: float | None = None
    ) -> NoteWritten:
        """Add a note. If the tier has a note with the same content at the same level, return that one.

        *content* is 1 byte to 64 KiB. *note_id* is a UUID; None: a new one. NoteExists: another
        note has that id. BudgetExceeded: see its `entries`. TierDisabled: the host has disabled the tier.
        """
        request = _convert.message(
            pb.AddNoteRequest, content=content, tier=_convert.tier_to_proto(tier), note_id=_convert.id_to_proto(note_id)
        )
        return _written(await self._calls(self._notes.AddNote, request, timeout))

    async def update_note(
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
        return _written(await self._calls(self._notes.UpdateNote, request, timeout))

    async def delete_note(
        self, note_id: str, *, tier: Tier = Tier.MEMORY, etag: str | None = None, timeout: float | None = None
    ) -> NoteDeleted:
        """Delete the session's own-level version; return the level of the lower version that is now visible, if any.

        WriteLevelMismatch: only a lower version is visible. NoteNotFound: none is.
        """
        request = _convert.message(
            pb.DeleteNoteRequest, note_id=note_id, tier=_convert.tier_to_proto(tier), etag=etag or ""
        )
        response = await self._calls(self._notes.DeleteNote, request, timeout)
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

    async def list_notes_page(
        self, tier: Tier = Tier.MEMORY, *, page_size: int = 0, page_token: str = "", timeout: float | None = None
    ) -> NotePage:
        """One page, with the highest level in it and the usage. A *page_size* of 0 means 50; the most is 250."""
        request = _convert.message(
            pb.ListNotesRequest, tier=_convert.tier_to_proto(tier), page_size=page_size, page_token=page_token
        )
        return _page(await self._calls(self._notes.ListNotes, request, timeout))

    async def search_notes(
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
        return _search_results(await self._calls(self._notes.SearchNotes, request, timeout))

    async def edit_notes(
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
        return _edited(await self._calls(self._notes.EditNotes, request, timeout))
