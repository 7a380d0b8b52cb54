"""Notes in two budgeted tiers, as one session sees them. All writes go through `edit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import TypeAlias

from muniment_server.domain.budgets import Tier, Usage
from muniment_server.domain.classification import Label
from muniment_server.domain.items import PAGE_BYTES, Item, ItemKind
from muniment_server.domain.notes import DeleteStep, KeepStep, Note, NoteEdit, NoteSet, Plan, SaveStep, plan_edits
from muniment_server.items import item_store
from muniment_server.items.item_store import NewVersion
from muniment_server.items.notes import NOTE_VERSIONS, note_set
from muniment_server.items.rows import Deleted, Saved
from muniment_server.monitor.session_scope import Pending, SessionScope, WriteLock
from muniment_server.search.search import Searcher

Position: TypeAlias = tuple[datetime, str]
"""A position in a list: create time and id."""
_OVERHEAD_BYTES = 256
"""The size of a note in a response beside its content, at most."""


@dataclass(frozen=True, slots=True)
class EditedNotes:
    """The result of a list of edits."""

    notes: tuple[Note, ...]
    """As stored, one for each that was added or updated."""
    revealed: tuple[Label | None, ...]
    """The level at which a lower version is seen from now on, one for each that was deleted."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class NotePage:
    """Some notes of a tier, oldest first."""

    notes: Sequence[Note]
    more: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class NoteMatch:
    """One result of a search, as `search.Match`."""

    note: Note
    score: float
    snippet: str
    relevance: float


@dataclass(frozen=True, slots=True)
class NoteSearch:
    """The results of a search, as `search.Found`, and the usage of the tier."""

    matches: Sequence[NoteMatch]
    semantic: bool
    reranked: bool
    usage: Usage


def edit(scope: SessionScope, tier: Tier, edits: Sequence[NoteEdit], *, validate_only: bool = False) -> EditedNotes:
    """Apply all edits or none. With *validate_only*, apply none and return only the usage that they would lead to.

    Raises TierDisabled, NoteNotFound, NoteExists, WriteLevelMismatch, EtagStale or BudgetExceeded.
    Two round trips: the visible versions, under the write lock; the writes and the commit.
    """
    with scope.write_lock() as lock:
        notes = note_set(scope.taint, lock.look_up(NOTE_VERSIONS))
        plan = plan_edits(notes, tier, edits)
        if validate_only:
            return EditedNotes((), (), plan.usage)
        saves, deletes = _write(scope, lock, tier, plan)
    return _edited(notes, tier, plan, saves, deletes)


def list_notes(scope: SessionScope, tier: Tier, *, after: Position | None, limit: int) -> NotePage:
    """Up to *limit* notes of *tier* after *after*, oldest first."""
    notes = note_set(scope.taint, scope.look_up(NOTE_VERSIONS))
    page = _page(notes.notes(tier), after, limit, notes.usage(tier))
    scope.record_read(ItemKind.NOTE, [note.version for note in page.notes])
    return page


def search(
    scope: SessionScope, searcher: Searcher, query: str, *, tier: Tier, limit: int, min_relevance: float
) -> NoteSearch:
    """Up to *limit* notes of *tier* that match *query*, best first."""
    usage = note_set(scope.taint, scope.look_up(NOTE_VERSIONS)).usage(tier)
    found = searcher.search(scope, ItemKind.NOTE, query, limit=limit, min_relevance=min_relevance, tier=tier)
    matches = [NoteMatch(_note(match.item), match.score, match.snippet, match.relevance) for match in found.matches]
    return NoteSearch(matches, found.semantic, found.reranked, usage)


def _write(
    scope: SessionScope, lock: WriteLock, tier: Tier, plan: Plan
) -> tuple[dict[int, tuple[NewVersion, Pending[Saved]]], dict[int, Pending[Deleted]]]:
    """Run the writes of *plan*; return their pending results by the index of the step."""
    saves: dict[int, tuple[NewVersion, Pending[Saved]]] = {}
    deletes: dict[int, Pending[Deleted]] = {}
    for place, step in enumerate(plan.steps):
        match step:
            case SaveStep(note_id, content, position):
                new = NewVersion(ItemKind.NOTE, note_id, content, tier=tier, position=position)
                saves[place] = new, item_store.save_locked(scope, lock, new)
            case DeleteStep(note_id):
                deletes[place] = item_store.delete_locked(scope, lock, ItemKind.NOTE, note_id)
    return saves, deletes


def _edited(
    before: NoteSet,
    tier: Tier,
    plan: Plan,
    saves: dict[int, tuple[NewVersion, Pending[Saved]]],
    deletes: dict[int, Pending[Deleted]],
) -> EditedNotes:
    """The result of *plan*, step by step: a step may keep what one before it saved or revealed."""
    seen = {note.note_id: note for note in before.notes(tier)}
    notes: list[Note] = []
    revealed: list[Label | None] = []
    for place, step in enumerate(plan.steps):
        match step:
            case SaveStep(note_id):
                new, saved = saves[place]
                seen[note_id] = _note(item_store.saved_item(new, saved.row()))
                notes.append(seen[note_id])
            case DeleteStep(note_id):
                revealed.append(item_store.revealed(ItemKind.NOTE, deletes[place].row()))
                seen |= {note.note_id: note for note in before.below(note_id)}
            case KeepStep(note_id):
                notes.append(seen[note_id])
    written = tuple(replace(note, newer_below=None) for note in notes)  # as in the answers to all writes
    return EditedNotes(written, tuple(revealed), plan.usage)


def _page(notes: Sequence[Note], after: Position | None, limit: int, usage: Usage) -> NotePage:
    """One page: up to *limit* notes, and up to PAGE_BYTES."""
    following = [note for note in notes if after is None or (note.create_time, note.note_id) > after]
    sizes = accumulate(_OVERHEAD_BYTES + len(note.content.encode()) for note in following)
    fitting = [note for note, size in zip(following, sizes, strict=True) if size <= PAGE_BYTES][:limit]
    return NotePage(fitting, len(fitting) < len(following), usage)


def _note(item: Item) -> Note:
    return Note(
        note_id=item.name,
        tier=item.tier,
        content=item.content,
        label=item.label,
        version=item.version,
        create_time=item.create_time,
        update_time=item.update_time,
        newer_below=item.newer_below,
    )
