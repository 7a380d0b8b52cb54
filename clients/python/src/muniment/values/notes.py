"""Notes in two budgeted tiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification, Integrity, NamedEnum
from muniment.values.versions import NewerBelow


class Tier(NamedEnum):
    """One of an agent's two sets of notes: its own, and the profile of its user.

    Each has a budget, and the host can disable each.
    """

    MEMORY = 1
    USER = 2


@dataclass(frozen=True, slots=True)
class Note:
    """One version of one note, as a session sees it. Pass its *etag* to a write to change only this version."""

    note_id: str
    tier: Tier
    content: str = field(repr=False)
    classification: Classification
    etag: str
    create_time: datetime
    update_time: datetime
    newer_below: NewerBelow | None = None
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a tier's budget the visible notes take, in Unicode code points.

    *percent* is rounded down. It may exceed 100, because a session also sees notes of lower levels.
    """

    tier: Tier
    used_chars: int
    limit_chars: int
    percent: int


@dataclass(frozen=True, slots=True)
class BudgetEntry:
    """One note that takes up budget. *preview* is its first 40 code points.

    A session can shorten any note with an update, but delete only those of its *own_level*.
    """

    note_id: str
    length_chars: int
    preview: str = field(repr=False)
    own_level: bool
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """The stored note, and the tier's usage."""

    note: Note
    usage: Usage


@dataclass(frozen=True, slots=True)
class NoteDeleted:
    """The level of the lower version that is now visible, None if there is none, and the tier's usage."""

    revealed: Classification | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class NotePage:
    """One page of notes. *classification* is the highest level among them, PUBLIC if there are none."""

    notes: tuple[Note, ...]
    usage: Usage
    next_page_token: str = field(repr=False)
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[Note]:
        return iter(self.notes)

    def __len__(self) -> int:
        return len(self.notes)


@dataclass(frozen=True, slots=True)
class NoteResult:
    """One match of a search. Scores are comparable only within one response; higher is better."""

    note: Note
    score: float
    snippet: str = field(repr=False)
    relevance: float
    """How well it fits the query, from 0 to 1, comparable between searches. Below 0.3 it hardly fits."""


@dataclass(frozen=True, slots=True)
class NoteSearchResults:
    """The best matches, best first, and the tier's usage.

    *classification* is the highest level among them, PUBLIC if there are none. *semantic*: whether
    embeddings were compared, and not only words. *reranked*: whether a reranker ordered the matches.
    """

    results: tuple[NoteResult, ...]
    usage: Usage
    classification: Classification
    semantic: bool
    reranked: bool = False
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[NoteResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class AddNote:
    """An edit: add a note. Without *note_id*, the client generates one."""

    content: str = field(repr=False)
    note_id: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateNote:
    """An edit: replace the content of a note."""

    note_id: str
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeleteNote:
    """An edit: delete a note."""

    note_id: str


NoteEdit = AddNote | UpdateNote | DeleteNote


@dataclass(frozen=True, slots=True)
class NotesEdited:
    """The result of several edits: the notes added and updated, in the order of the edits, and the usage.

    *classification* is the highest level among the notes, PUBLIC if there are none. With
    *validate_only*, there are no notes, and the usage is what it would be.
    """

    notes: tuple[Note, ...]
    usage: Usage
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""
