"""Notes in two budgeted tiers: what a session sees, and what its edits write.

Planning is pure: the repository reads every visible version under the write lock, asks `plan_edits` what to write,
and writes that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from muniment_server.domain.budgets import SEPARATOR, BudgetEntry, MemorySettings, Tier, Usage
from muniment_server.domain.classification import Label, strictly_below, unshadowed
from muniment_server.domain.errors import (
    BudgetExceeded,
    EtagStale,
    NoteExists,
    NoteIsAgentNote,
    NoteIsUserProfile,
    NoteNotFound,
    TierDisabled,
    WriteLevelMismatch,
)
from muniment_server.domain.items import NewerBelow, Version, newer_below
from muniment_server.domain.prompt import escape

_MAX_ENTRIES = 10
_PREVIEW_CHARS = 40
"""Code points of a note that a refusal shows. Only a session that may read the note receives it."""
_IN_OTHER_TIER = {Tier.MEMORY: NoteIsAgentNote, Tier.USER: NoteIsUserProfile}


@dataclass(frozen=True, slots=True)
class Note:
    """One version of one note."""

    note_id: str
    tier: Tier
    content: str
    label: Label
    version: Version
    create_time: datetime
    update_time: datetime
    newer_below: NewerBelow | None = None


@dataclass(frozen=True, slots=True)
class AddNote:
    """Add a note. *note_id* comes from the caller, or is new."""

    note_id: str
    content: str


@dataclass(frozen=True, slots=True)
class UpdateNote:
    """Replace the content of a note. With *etag*, only if that version is the current one."""

    note_id: str
    content: str
    etag: Version | None = None


@dataclass(frozen=True, slots=True)
class DeleteNote:
    """Delete the own-level version of a note. With *etag*, only if that version is the current one."""

    note_id: str
    etag: Version | None = None


NoteEdit: TypeAlias = AddNote | UpdateNote | DeleteNote


@dataclass(frozen=True, slots=True)
class SaveStep:
    """Write the own-level version of a note."""

    note_id: str
    content: str
    position: int
    """The index in the list of edits. Keeps notes that are added at the same time in order."""


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """Delete the own-level version of a note."""

    note_id: str


@dataclass(frozen=True, slots=True)
class KeepStep:
    """Write nothing: the note already exists."""

    note_id: str


Step: TypeAlias = SaveStep | DeleteStep | KeepStep


@dataclass(frozen=True, slots=True)
class Plan:
    """What a list of edits writes: one step for each edit, and the tier's usage afterwards."""

    steps: tuple[Step, ...]
    usage: Usage


class NoteSet:
    """The notes of an agent as one session sees them: every visible version, and the agent's settings."""

    def __init__(self, taint: Label, settings: MemorySettings, versions: Iterable[Note]) -> None:
        self.taint = taint
        self._settings = settings
        self.versions: dict[str, dict[Label, Note]] = {}
        """By note id, oldest note first."""
        for note in sorted(versions, key=lambda note: (note.create_time, note.note_id)):
            self.versions.setdefault(note.note_id, {})[note.label] = note

    def notes(self, tier: Tier) -> list[Note]:
        """Each note of *tier* at its highest version, oldest first. Shadowing comes before the tier filter."""
        seen = map(_seen, self.versions.values())
        return sorted((note for note in seen if note.tier is tier), key=lambda note: (note.create_time, note.note_id))

    def below(self, note_id: str) -> list[Note]:
        """The version that is seen once the own-level one is deleted, as a list of one, or an empty list."""
        lower = strictly_below(self.versions.get(note_id, {}), self.taint)
        return [_seen(lower)] if lower else []

    def usage(self, tier: Tier) -> Usage:
        """The usage of *tier*."""
        return self.usage_of(tier, [note.content for note in self.notes(tier)])

    def usage_of(self, tier: Tier, contents: Sequence[str]) -> Usage:
        """The usage of *tier* if it held notes of these *contents*, as the prompt has them."""
        used = sum(map(_rendered_chars, contents)) + len(SEPARATOR) * max(0, len(contents) - 1)
        settings = self._settings
        limit = settings.memory_char_limit if tier is Tier.MEMORY else settings.user_char_limit
        assert limit is not None
        return Usage(tier, used, limit)

    def enabled(self, tier: Tier) -> bool:
        """Whether *tier* is enabled for the agent."""
        settings = self._settings
        return bool(settings.memory_enabled if tier is Tier.MEMORY else settings.user_profile_enabled)


def _seen(versions: Mapping[Label, Note]) -> Note:
    """The version that shadows the others. It says whether another is newer."""
    shown = unshadowed(versions)
    newest = max(versions.values(), key=lambda note: (note.update_time, note.label.value))
    return replace(shown, newer_below=newer_below(shown.label, newest.label, newest.update_time))


def plan_edits(notes: NoteSet, tier: Tier, edits: Sequence[NoteEdit]) -> Plan:
    """What *edits* write. Each edit sees the effects of those before it; the budget applies to the final state.

    Raises TierDisabled, NoteNotFound, NoteExists, WriteLevelMismatch, EtagStale or BudgetExceeded.
    """
    draft = _Draft(notes, tier)
    before = draft.usage()
    steps = tuple(draft.apply(edit, position) for position, edit in enumerate(edits))
    after = draft.usage()
    only_deletes = all(isinstance(edit, DeleteNote) for edit in edits)
    if not only_deletes:
        _require_budget(notes, before, after)
    return Plan(steps, after)


def require_budget(notes: NoteSet, tier: Tier, note_id: str, content: str) -> None:
    """Check that a deleted version may come back at the own level. Raises TierDisabled or BudgetExceeded."""
    draft = _Draft(notes, tier)
    before = draft.usage()
    draft.undelete(note_id, content)
    _require_budget(notes, before, draft.usage())


@dataclass(frozen=True, slots=True)
class _Text:
    """The part of one version that planning needs. A text that an edit writes has no version yet."""

    tier: Tier
    content: str
    version: Version | None


class _Draft:
    """The notes as they will be, edit by edit."""

    def __init__(self, notes: NoteSet, tier: Tier) -> None:
        self._notes = notes
        self._tier = tier
        self._texts = {
            note_id: {label: _Text(note.tier, note.content, note.version) for label, note in versions.items()}
            for note_id, versions in notes.versions.items()
        }
        self._ages = {note_id: age for age, note_id in enumerate(self._texts)}
        """The position of each note in the order of creation."""
        self._own: dict[str, set[str]] = {}
        """The ids of the tier's own-level notes by content. Without this index, each edit would scan every note."""
        for note_id in self._texts:
            self._index(note_id)

    def usage(self) -> Usage:
        seen = map(unshadowed, self._texts.values())
        return self._notes.usage_of(self._tier, [text.content for text in seen if text.tier is self._tier])

    def apply(self, edit: NoteEdit, position: int) -> Step:
        match edit:
            case AddNote(note_id, content):
                return self._add(note_id, content, position)
            case UpdateNote(note_id, content, etag):
                return self._update(note_id, content, etag, position)
            case DeleteNote(note_id, etag):
                return self._delete(note_id, etag)

    def undelete(self, note_id: str, content: str) -> None:
        self._must_be_enabled()
        self._write(note_id, content, 0)

    def _add(self, note_id: str, content: str, position: int) -> Step:
        self._must_be_enabled()
        if note_id in self._texts:
            seen = unshadowed(self._texts[note_id])
            if (seen.tier, seen.content) != (self._tier, content):
                raise NoteExists
            return KeepStep(note_id)
        duplicate = min(self._own.get(content, ()), key=self._ages.__getitem__, default=None)
        return KeepStep(duplicate) if duplicate is not None else self._write(note_id, content, position)

    def _update(self, note_id: str, content: str, etag: Version | None, position: int) -> Step:
        self._must_be_enabled()
        seen = self._seen(note_id)
        if etag is not None and etag != seen.version:
            raise EtagStale
        return self._write(note_id, content, position)

    def _delete(self, note_id: str, etag: Version | None) -> Step:
        seen = self._seen(note_id)
        versions = self._texts[note_id]
        if self._notes.taint not in versions:
            raise WriteLevelMismatch
        if etag is not None and etag != seen.version:
            raise EtagStale
        self._unindex(note_id)
        del versions[self._notes.taint]
        if not versions:
            del self._texts[note_id]
        return DeleteStep(note_id)

    def _must_be_enabled(self) -> None:
        if not self._notes.enabled(self._tier):
            raise TierDisabled

    def _seen(self, note_id: str) -> _Text:
        """The visible version of a note, which must be in the tier."""
        if note_id not in self._texts:
            raise NoteNotFound
        seen = unshadowed(self._texts[note_id])
        if seen.tier is not self._tier:
            raise _IN_OTHER_TIER[seen.tier]
        return seen

    def _write(self, note_id: str, content: str, position: int) -> Step:
        self._unindex(note_id)
        if note_id not in self._texts:
            self._ages[note_id] = len(self._ages)
        self._texts.setdefault(note_id, {})[self._notes.taint] = _Text(self._tier, content, None)
        self._index(note_id)
        return SaveStep(note_id, content, position)

    def _index(self, note_id: str) -> None:
        own = self._texts[note_id].get(self._notes.taint)
        if own is not None and own.tier is self._tier:
            self._own.setdefault(own.content, set()).add(note_id)

    def _unindex(self, note_id: str) -> None:
        own = self._texts.get(note_id, {}).get(self._notes.taint)
        if own is not None:
            self._own.get(own.content, set()).discard(note_id)


def _require_budget(notes: NoteSet, before: Usage, after: Usage) -> None:
    """A tier over its budget may shrink, but not grow."""
    if after.used_chars > max(after.limit_chars, before.used_chars):
        raise BudgetExceeded(before, would_be_chars=after.used_chars, entries=_largest(notes, before.tier))


def _largest(notes: NoteSet, tier: Tier) -> tuple[BudgetEntry, ...]:
    """The largest notes, so that the session can make room."""
    largest = sorted(notes.notes(tier), key=lambda note: -_rendered_chars(note.content))[:_MAX_ENTRIES]
    return tuple(
        BudgetEntry(
            note_id=note.note_id,
            length_chars=_rendered_chars(note.content),
            preview=note.content[:_PREVIEW_CHARS],
            own_level=note.label is notes.taint,
            label=note.label,
        )
        for note in largest
    )


def _rendered_chars(content: str) -> int:
    """The size of a note in the prompt, in code points. An invisible character is up to ten of them there."""
    return len(escape(content))
