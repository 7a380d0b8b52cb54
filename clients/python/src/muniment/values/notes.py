"""Notes in two budgeted tiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from muniment.values.levels import Classification


class Tier(IntEnum):
    """One of an agent's two sets of notes: its own, and the profile of its user.

    Each has a budget, and each can be switched off by the host.
    """

    MEMORY = 1
    USER = 2


@dataclass(frozen=True, slots=True)
class Note:
    """One version of one note, as a session sees it. Give its *etag* back to change nothing but this version."""

    note_id: str
    tier: Tier
    content: str = field(repr=False)
    classification: Classification
    etag: str
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a tier's budget the notes take that the session sees, in Unicode code points.

    *percent* is rounded down. It may pass 100: a session also sees what lower ones wrote.
    """

    tier: Tier
    used_chars: int
    limit_chars: int
    percent: int


@dataclass(frozen=True, slots=True)
class BudgetEntry:
    """One note that takes room. *preview* is its first 40 code points.

    A session can delete a note of its *own_level* only, and shorten any by updating it.
    """

    note_id: str
    length_chars: int
    preview: str = field(repr=False)
    own_level: bool
    classification: Classification


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """A note as it is stored, and the tier's usage now."""

    note: Note
    usage: Usage


@dataclass(frozen=True, slots=True)
class NoteDeleted:
    """The level at which a lower version is seen from now on, None when there is none, and the tier's usage now."""

    revealed: Classification | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class NotePage:
    """One page of notes. *classification* is the highest level among them, PUBLIC when there are none."""

    notes: tuple[Note, ...]
    usage: Usage
    next_page_token: str = field(repr=False)
    classification: Classification

    def __iter__(self) -> Iterator[Note]:
        return iter(self.notes)

    def __len__(self) -> int:
        return len(self.notes)


@dataclass(frozen=True, slots=True)
class NoteResult:
    """One match of a search. Scores compare within one answer only: higher is better."""

    note: Note
    score: float
    snippet: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NoteSearchResults:
    """The best matches, best first, and the tier's usage.

    *classification* is the highest level among them, PUBLIC when there are none. *semantic*: whether
    meaning was compared too, and not words alone.
    """

    results: tuple[NoteResult, ...]
    usage: Usage
    classification: Classification
    semantic: bool

    def __iter__(self) -> Iterator[NoteResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class AddNote:
    """An edit: add a note. Without *note_id* the client makes one."""

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
    """What several edits came to: the notes added and updated, in the order of the edits, and the usage now.

    *classification* is the highest level among the notes, PUBLIC when there are none. Edits that were
    only judged give no notes, and the usage as it would be.
    """

    notes: tuple[Note, ...]
    usage: Usage
    classification: Classification
