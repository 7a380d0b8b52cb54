"""What an agent's notes must be, and what its budgets must say: notes are a list of versions, usage is a length.

Written from the published rules, and slow: shares nothing with the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from muniment import (
    AddNote,
    BudgetEntry,
    Classification,
    DeleteNote,
    MemorySettings,
    NoteEdit,
    Overrun,
    Tier,
    UpdateNote,
    Usage,
)

SEPARATOR = "\n§\n"
DEFAULT_LIMITS = {Tier.MEMORY: 2_200, Tier.USER: 1_375}


@dataclass(frozen=True, slots=True)
class Version:
    """One version of one note."""

    note_id: str
    tier: Tier
    content: str
    level: Classification
    age: int
    """Orders the notes: the smaller the older. A version over a lower one is as old as that."""


class NoteSet:
    """The live versions of one agent's notes, and the limits of its tiers."""

    def __init__(self) -> None:
        self.limits = dict(DEFAULT_LIMITS)
        self._versions: list[Version] = []
        self._ages = count()

    @property
    def settings(self) -> MemorySettings:
        """The limits, as a host sets them."""
        return MemorySettings(memory_char_limit=self.limits[Tier.MEMORY], user_char_limit=self.limits[Tier.USER])

    def versions(self, tier: Tier) -> list[Version]:
        """All live ones, visible or not."""
        return [version for version in self._versions if version.tier == tier]

    def seen(self, tier: Tier, taint: Classification) -> list[Version]:
        """What a session sees: of each note the highest version, oldest first."""
        return _seen(self._versions, tier, taint)

    def usage(self, tier: Tier, taint: Classification) -> Usage:
        return self._usage(self.seen(tier, taint), tier)

    def edit(self, tier: Tier, taint: Classification, edits: Iterable[NoteEdit]) -> Usage | Overrun:
        """Make all edits, or none and say why not."""
        before, versions = self.usage(tier, taint), list(self._versions)
        for edit in edits:
            versions = self._after(versions, tier, taint, edit)
        after = self._usage(_seen(versions, tier, taint), tier)
        if after.used_chars > max(after.limit_chars, before.used_chars):
            over_by = after.used_chars - after.limit_chars
            return Overrun(before, after.used_chars, over_by, self._largest(tier, taint))
        self._versions = versions
        return after

    def _after(self, versions: Sequence[Version], tier: Tier, taint: Classification, edit: NoteEdit) -> list[Version]:
        below = [v for v in versions if v.note_id == edit.note_id and v.level <= taint]
        others = [v for v in versions if (v.note_id, v.level) != (edit.note_id, taint)]
        match edit:
            case AddNote(content, str(note_id)):
                assert not below
                return [*others, Version(note_id, tier, content, taint, next(self._ages))]
            case UpdateNote(note_id, content):
                return [*others, Version(note_id, tier, content, taint, min(v.age for v in below))]
            case DeleteNote():
                assert len(others) == len(versions) - 1
                return others
        raise AssertionError("a note is added without an id")

    def _usage(self, seen: Sequence[Version], tier: Tier) -> Usage:
        used, limit = len(SEPARATOR.join(version.content for version in seen)), self.limits[tier]
        return Usage(tier, used, limit, 100 * used // limit)

    def _largest(self, tier: Tier, taint: Classification) -> tuple[BudgetEntry, ...]:
        by_length = sorted(self.seen(tier, taint), key=lambda version: len(version.content), reverse=True)
        return tuple(
            BudgetEntry(v.note_id, len(v.content), v.content[:40], v.level == taint, v.level) for v in by_length[:10]
        )


def _seen(versions: Sequence[Version], tier: Tier, taint: Classification) -> list[Version]:
    below = sorted((v for v in versions if v.level <= taint), key=lambda version: version.level)
    highest = {version.note_id: version for version in below}.values()
    return sorted((version for version in highest if version.tier == tier), key=lambda version: version.age)


def room_for(note: AddNote, refusal: Overrun) -> list[NoteEdit]:
    """The edits that make room for a note and add it, as the refusal suggests them, and from nothing else.

    The largest go: entries of the own level are deleted, lower ones cut down to what the refusal shows of them.
    """
    edits: list[NoteEdit] = []
    missing = refusal.over_by_chars
    for entry in refusal.entries:
        if missing > 0 and entry.own_level:
            edits.append(DeleteNote(entry.note_id))
            missing -= entry.length_chars + len(SEPARATOR)
        elif missing > 0:
            edits.append(UpdateNote(entry.note_id, entry.preview))
            missing -= entry.length_chars - len(entry.preview)
    return [*edits, note]
