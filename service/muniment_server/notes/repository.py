"""Notes in two budgeted tiers, as one session sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import (
    BudgetExceeded,
    EtagStale,
    NoteNotFound,
    Refusal,
    TierDisabled,
    WriteLevelMismatch,
)
from muniment_server.domain.notes import DeleteStep, KeepStep, NoteEdit, Plan, SaveStep, Shelf, Step, judge
from muniment_server.domain.records import (
    EditedNotes,
    ItemKind,
    MemorySettings,
    Note,
    NotePage,
    NoteResult,
    Tier,
    Usage,
    Version,
)
from muniment_server.items.store import Items, delete_query, deleted, save_query
from muniment_server.monitor.paging import PAGE_BYTES
from muniment_server.monitor.session_scope import Fence, Query, held
from muniment_server.search.index import text_of

Place = tuple[datetime, str]
"""Where a note stands in a list: create time, id."""
_OVERHEAD = 256
"""Bytes that a note takes in an answer beside its content, at most."""
_RECORDED: dict[type[Refusal], str] = {
    BudgetExceeded: "BUDGET_EXCEEDED",
    EtagStale: "ETAG_STALE",
    TierDisabled: "TIER_DISABLED",
    WriteLevelMismatch: "WRITE_LEVEL_MISMATCH",
}
"""The refusals that leave an audit row."""


class Notes:
    """Notes at or below the session's taint; writes go to its own level, all through `edit`."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self._items = Items(fence, ItemKind.NOTE, NoteNotFound)

    def edit(self, tier: Tier, edits: Sequence[NoteEdit], *, validate_only: bool = False) -> EditedNotes:
        """Make all edits or none; or only judge them, so that the usage is all there is to return.

        Raises TierDisabled, NoteNotFound, NoteExists, WriteLevelMismatch, EtagStale or BudgetExceeded.
        Two round trips: the versions under the lock of the shelf; the writes and the commit.
        """
        _, rows = self._fence.lock_shelf("note_versions")
        shelf = self._shelf(rows)
        plan = self._judged(shelf, tier, edits)
        if validate_only:
            return EditedNotes((), (), plan.usage)
        return _edited(shelf, tier, plan, self._written(tier, plan))

    def list(self, tier: Tier, *, after: Place | None, limit: int) -> NotePage:
        """Up to *limit* notes of *tier*, oldest first, those after *after*."""

        def page(answers: Sequence[Sequence[Any]]) -> NotePage:
            shelf = self._shelf(answers[0])
            return _page(shelf.notes(tier), after, limit, shelf.usage(tier))

        return page(
            self._fence.read_all(
                [Query("note_versions", {})],
                kind=ItemKind.NOTE,
                shown=lambda answers: [note.version for note in page(answers).notes],
            )
        )

    def search(self, query: str, *, tier: Tier, limit: int) -> tuple[Sequence[NoteResult], Usage, bool]:
        """Up to *limit* notes of *tier* that match *query*, best first; its usage; and whether meaning was compared."""
        usage = self._shelf(self._fence.look("note_versions")).usage(tier)
        found = self._items.search(query, tier=tier, limit=limit)
        results = [NoteResult(_note(match.row), match.score, match.snippet) for match in found.matches]
        return results, usage, found.semantic

    def _shelf(self, rows: Sequence[Any]) -> Shelf:
        return shelf_of_rows(self._fence.session.taint, rows)

    def _judged(self, shelf: Shelf, tier: Tier, edits: Sequence[NoteEdit]) -> Plan:
        try:
            return judge(shelf, tier, edits)
        except Refusal as refusal:
            if outcome := _RECORDED.get(type(refusal)):
                self._fence.commit_refusal(outcome)
            raise

    def _written(self, tier: Tier, plan: Plan) -> Sequence[Any]:
        writes = [query for step in plan.steps if (query := _query(tier, step)) is not None]
        return self._fence.commit(writes) if writes else []


def _page(notes: Sequence[Note], after: Place | None, limit: int, usage: Usage) -> NotePage:
    """The notes of one page: up to *limit*, and up to PAGE_BYTES."""
    following = [note for note in notes if after is None or (note.create_time, note.note_id) > after]
    sizes = accumulate(_OVERHEAD + len(note.content.encode()) for note in following)
    fitting = [note for note, size in zip(following, sizes, strict=True) if size <= PAGE_BYTES][:limit]
    return NotePage(fitting, len(fitting) < len(following), usage)


def shelf_of_rows(taint: Classification, rows: Sequence[Any]) -> Shelf:
    """What the rows of `note_versions` say."""
    first = rows[0]
    settings = MemorySettings(
        memory_enabled=first.memory_enabled,
        user_profile_enabled=first.user_profile_enabled,
        memory_char_limit=first.memory_char_limit,
        user_char_limit=first.user_char_limit,
    )
    return Shelf(taint, settings, map(_note, held(rows)))


def _query(tier: Tier, step: Step) -> Query | None:
    match step:
        case SaveStep(note_id, content, position):
            text = text_of(ItemKind.NOTE, note_id, content)
            return save_query(ItemKind.NOTE, note_id, content, tier=tier, position=position, text=text)
        case DeleteStep(note_id):
            return delete_query(ItemKind.NOTE, note_id)
        case KeepStep():
            return None


def _edited(shelf: Shelf, tier: Tier, plan: Plan, rows: Sequence[Any]) -> EditedNotes:
    """What the steps came to. *rows* are those of the steps that wrote."""
    written = iter(rows)
    seen = {note.note_id: note for note in shelf.notes(tier)}
    notes: list[Note] = []
    revealed: list[Classification | None] = []
    for step in plan.steps:
        match step:
            case SaveStep(note_id, content):
                seen[note_id] = _stored(note_id, tier, content, next(written))
                notes.append(seen[note_id])
            case DeleteStep(note_id):
                revealed.append(deleted(next(written), NoteNotFound))
                seen |= {note.note_id: note for note in shelf.below(note_id)}
            case KeepStep(note_id):
                notes.append(seen[note_id])
    return EditedNotes(tuple(notes), tuple(revealed), plan.usage)


def _stored(note_id: str, tier: Tier, content: str, row: Any) -> Note:
    return Note(
        note_id=note_id,
        tier=tier,
        content=content,
        classification=Classification(row.level),
        version=Version(row.item_id, row.revision),
        create_time=row.create_time,
        update_time=row.update_time,
    )


def _note(row: Any) -> Note:
    return _stored(row.name, Tier(row.tier), row.content, row)
