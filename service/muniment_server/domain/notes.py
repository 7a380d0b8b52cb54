"""Notes in two budgeted tiers: what a session sees of them, and what its edits come to.

The judgement is pure: the store reads every visible version under the lock of the shelf, asks here what is to be
written, and writes that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import (
    BudgetEntry,
    BudgetExceeded,
    EtagStale,
    NoteExists,
    NoteIsAgentNote,
    NoteIsUserProfile,
    NoteNotFound,
    TierDisabled,
    WriteLevelMismatch,
)
from muniment_server.domain.records import MemorySettings, Note, Tier, Usage, Version

_V = TypeVar("_V")

SEPARATOR = "\n§\n"
"""Stands between the notes of a tier, and counts."""
_MOST_ENTRIES = 10
_PREVIEW = 40
"""Code points of a note that a refusal shows: it goes to whoever may read the note."""
_IN_OTHER_TIER = {Tier.MEMORY: NoteIsAgentNote, Tier.USER: NoteIsUserProfile}


@dataclass(frozen=True, slots=True)
class AddNote:
    """Add a note; *note_id* is the caller's own, or new."""

    note_id: str
    content: str


@dataclass(frozen=True, slots=True)
class UpdateNote:
    """Replace the content of a note, of just one version if *etag* says so."""

    note_id: str
    content: str
    etag: Version | None = None


@dataclass(frozen=True, slots=True)
class DeleteNote:
    """Delete the own-level version of a note, of just one version if *etag* says so."""

    note_id: str
    etag: Version | None = None


NoteEdit: TypeAlias = AddNote | UpdateNote | DeleteNote


@dataclass(frozen=True, slots=True)
class SaveStep:
    """Write the own-level version of a note."""

    note_id: str
    content: str
    position: int
    """The place in the list of edits: keeps notes that are added at one time in order."""


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """Delete the own-level version of a note."""

    note_id: str


@dataclass(frozen=True, slots=True)
class KeepStep:
    """Write nothing: the note is there already."""

    note_id: str


Step: TypeAlias = SaveStep | DeleteStep | KeepStep


@dataclass(frozen=True, slots=True)
class Plan:
    """What a list of edits comes to: one step for each, and the tier's usage afterwards."""

    steps: tuple[Step, ...]
    usage: Usage


class Shelf:
    """The notes of an agent as one session sees them: every visible version, and the settings of the agent."""

    def __init__(self, taint: Classification, settings: MemorySettings, versions: Iterable[Note]) -> None:
        self.taint = taint
        self._settings = settings
        self.versions: dict[str, dict[Classification, Note]] = {}
        """By id, the oldest note first."""
        for note in sorted(versions, key=lambda note: (note.create_time, note.note_id)):
            self.versions.setdefault(note.note_id, {})[note.classification] = note

    def notes(self, tier: Tier) -> list[Note]:
        """Each note of *tier* at its highest version, oldest first. Shadowed first, then held against the tier."""
        seen = (_highest(versions) for versions in self.versions.values())
        return sorted((note for note in seen if note.tier is tier), key=lambda note: (note.create_time, note.note_id))

    def below(self, note_id: str) -> list[Note]:
        """The version of a note that is seen when its own-level one is deleted; none or one."""
        lower = {level: note for level, note in self.versions.get(note_id, {}).items() if level < self.taint}
        return [_highest(lower)] if lower else []

    def usage(self, tier: Tier) -> Usage:
        """The usage of *tier*."""
        return self.usage_of(tier, [len(note.content) for note in self.notes(tier)])

    def usage_of(self, tier: Tier, lengths: Sequence[int]) -> Usage:
        """The usage of *tier* if it held notes of these lengths."""
        used = sum(lengths) + len(SEPARATOR) * max(0, len(lengths) - 1)
        settings = self._settings
        limit = settings.memory_char_limit if tier is Tier.MEMORY else settings.user_char_limit
        assert limit is not None
        return Usage(tier, used, limit)

    def enabled(self, tier: Tier) -> bool:
        """Whether the host lets the agent keep *tier*."""
        settings = self._settings
        return bool(settings.memory_enabled if tier is Tier.MEMORY else settings.user_profile_enabled)


def judge(shelf: Shelf, tier: Tier, edits: Sequence[NoteEdit]) -> Plan:
    """What *edits* come to, each seeing what those before it did; the budget is held against what they end in.

    Raises TierDisabled, NoteNotFound, NoteExists, WriteLevelMismatch, EtagStale or BudgetExceeded.
    """
    desk = _Desk(shelf, tier)
    before = desk.usage()
    steps = tuple(desk.take(edit, position) for position, edit in enumerate(edits))
    after = desk.usage()
    only_deletes = all(isinstance(edit, DeleteNote) for edit in edits)
    if not only_deletes and after.used_chars > max(after.limit_chars, before.used_chars):
        raise BudgetExceeded(before, would_be_chars=after.used_chars, entries=_largest(shelf, tier))
    return Plan(steps, after)


@dataclass(frozen=True, slots=True)
class _Text:
    """What counts of one version while edits are judged. Written by an edit, it has no version yet."""

    tier: Tier
    content: str
    version: Version | None


class _Desk:
    """The notes as they become, edit by edit."""

    def __init__(self, shelf: Shelf, tier: Tier) -> None:
        self._shelf = shelf
        self._tier = tier
        self._texts = {
            note_id: {level: _Text(note.tier, note.content, note.version) for level, note in versions.items()}
            for note_id, versions in shelf.versions.items()
        }
        self._ages = {note_id: age for age, note_id in enumerate(self._texts)}
        """The places of notes in the order in which they were added."""
        self._own: dict[str, set[str]] = {}
        """The ids of the tier's own-level notes by content: an index, or each edit would look at every note."""
        for note_id in self._texts:
            self._index(note_id)

    def usage(self) -> Usage:
        seen = map(_highest, self._texts.values())
        return self._shelf.usage_of(self._tier, [len(text.content) for text in seen if text.tier is self._tier])

    def take(self, edit: NoteEdit, position: int) -> Step:
        match edit:
            case AddNote(note_id, content):
                return self._add(note_id, content, position)
            case UpdateNote(note_id, content, etag):
                return self._update(note_id, content, etag, position)
            case DeleteNote(note_id, etag):
                return self._delete(note_id, etag)

    def _add(self, note_id: str, content: str, position: int) -> Step:
        self._must_be_enabled()
        if note_id in self._texts:
            seen = _highest(self._texts[note_id])
            if (seen.tier, seen.content) != (self._tier, content):
                raise NoteExists
            return KeepStep(note_id)
        twin = min(self._own.get(content, ()), key=self._ages.__getitem__, default=None)
        return KeepStep(twin) if twin is not None else self._write(note_id, content, position)

    def _update(self, note_id: str, content: str, etag: Version | None, position: int) -> Step:
        self._must_be_enabled()
        seen = self._seen(note_id)
        if etag is not None and etag != seen.version:
            raise EtagStale
        return self._write(note_id, content, position)

    def _delete(self, note_id: str, etag: Version | None) -> Step:
        seen = self._seen(note_id)
        versions = self._texts[note_id]
        if self._shelf.taint not in versions:
            raise WriteLevelMismatch
        if etag is not None and etag != seen.version:
            raise EtagStale
        self._unindex(note_id)
        del versions[self._shelf.taint]
        if not versions:
            del self._texts[note_id]
        return DeleteStep(note_id)

    def _must_be_enabled(self) -> None:
        if not self._shelf.enabled(self._tier):
            raise TierDisabled

    def _seen(self, note_id: str) -> _Text:
        """The visible version of a note that must be of the tier."""
        if note_id not in self._texts:
            raise NoteNotFound
        seen = _highest(self._texts[note_id])
        if seen.tier is not self._tier:
            raise _IN_OTHER_TIER[seen.tier]
        return seen

    def _write(self, note_id: str, content: str, position: int) -> Step:
        self._unindex(note_id)
        if note_id not in self._texts:
            self._ages[note_id] = len(self._ages)
        self._texts.setdefault(note_id, {})[self._shelf.taint] = _Text(self._tier, content, None)
        self._index(note_id)
        return SaveStep(note_id, content, position)

    def _index(self, note_id: str) -> None:
        own = self._texts[note_id].get(self._shelf.taint)
        if own is not None and own.tier is self._tier:
            self._own.setdefault(own.content, set()).add(note_id)

    def _unindex(self, note_id: str) -> None:
        own = self._texts.get(note_id, {}).get(self._shelf.taint)
        if own is not None:
            self._own.get(own.content, set()).discard(note_id)


def _highest(versions: Mapping[Classification, _V]) -> _V:
    return versions[max(versions)]


def _largest(shelf: Shelf, tier: Tier) -> tuple[BudgetEntry, ...]:
    """The largest notes as they are, for whoever has to make room."""
    notes = sorted(shelf.notes(tier), key=lambda note: -len(note.content))
    return tuple(
        BudgetEntry(
            note_id=note.note_id,
            length_chars=len(note.content),
            preview=note.content[:_PREVIEW],
            own_level=note.classification is shelf.taint,
            classification=note.classification,
        )
        for note in notes[:_MOST_ENTRIES]
    )
