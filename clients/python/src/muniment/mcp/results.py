"""The results of the tools."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, SerializerFunctionWrapHandler, model_serializer

import muniment
from muniment import Classification

WHOLE = 2000
"""Up to how many code points a search shows the whole content."""
LINE = 200
"""Up to how many code points a list, which has many entries, shows the whole content."""

Level = Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]
Target = Literal["memory", "user"]
Kind = Literal["memory", "note", "block", "passage"]

Trusted = Literal["TRUSTED"]

LEVELS: dict[Classification, Level] = {
    Classification.PUBLIC: "PUBLIC",
    Classification.INTERNAL: "INTERNAL",
    Classification.CONFIDENTIAL: "CONFIDENTIAL",
    Classification.RESTRICTED: "RESTRICTED",
}


class Labeled(BaseModel):
    """A result that says how sensitive it is, for the host of the model."""

    classification: Level


_RARE = ("newer_below", "next", "relevance", "hint", "integrity")


class _Sparse(Labeled):
    """A result that leaves out rare fields without a value."""

    @model_serializer(mode="wrap")
    def _serialized(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in fields(self).items() if name not in _RARE or value is not None}


class Shown(_Sparse):
    """An item that is shown."""

    newer_below: Level | None = None
    """The level of a newer version that is less sensitive. Left out if there is none."""
    integrity: Trusted | None = None
    """Left out if it is untrusted."""


class Entry(Shown):
    """An item of a list or search."""

    relevance: float | None = None
    """How well a result of a search fits, from 0 to 1. Below 0.3 it hardly fits."""


class Listed(_Sparse):
    """A part of a list."""

    more: bool
    """Whether there are more."""
    next: str | None = None
    """The `after` of the next part. Absent on the last."""


class Version(_Sparse):
    """The version of an item at one label, or what it has replaced there."""

    integrity: Trusted | None = None
    """Left out if it is untrusted."""
    content: str
    tags: list[str]
    update_time: datetime
    replaced: bool
    """Whether a newer one has replaced it."""


class Versions(Listed):
    """The versions of an item, newest first."""

    versions: list[Version]


class Memory(Shown):
    """One memory, whole."""

    key: str
    content: str
    tags: list[str]
    update_time: datetime


class MemorySaved(Labeled):
    """A memory that was saved."""

    key: str


class MemoryEntry(Entry):
    """One memory of a list or search."""

    key: str
    content: str
    whole: bool
    """If not, memory_get reads the whole content."""
    tags: list[str]
    update_time: datetime


class MemoryList(Listed):
    """Memories by key."""

    memories: list[MemoryEntry]


class Deleted(BaseModel):
    """A deletion that was made."""

    deleted: str
    """The key or id."""
    revealed: bool
    """Whether an older, less sensitive version is seen again from now on."""


class Usage(BaseModel):
    """How much of their budget the notes of one target take."""

    used_chars: int
    limit_chars: int
    percent: int


class NoteDeleted(Deleted):
    """A deletion of a note that was made."""

    usage: Usage


class Note(Shown):
    """One note."""

    note_id: str
    content: str


class NoteWritten(Labeled):
    """A note that was written."""

    note_id: str
    usage: Usage


class Notes(Labeled):
    """The notes of one target."""

    notes: list[Note]
    usage: Usage


class Block(Shown):
    """One core block."""

    label: str
    content: str
    read_only: bool
    """Whether it is another agent's, shared for reading."""


class Blocks(Labeled):
    """All core blocks."""

    blocks: list[Block]


class BlockWritten(Labeled):
    """A block that was written."""

    label: str


class PassageStored(Labeled):
    """A passage that was stored."""

    passage_id: str


class Passage(Shown):
    """One passage, whole."""

    passage_id: str
    content: str
    author: str | None
    tags: list[str]
    event_time: datetime


class PassageEntry(Entry):
    """One passage of a list or search."""

    passage_id: str
    content: str
    whole: bool
    """If not, passage_get reads the whole content."""
    author: str | None
    tags: list[str]
    event_time: datetime


class PassageList(Listed):
    """Passages, the newest first."""

    passages: list[PassageEntry]


class NoteEntry(Entry):
    """One note of a search."""

    note_id: str
    target: Target
    content: str
    whole: bool
    """If not, note_list reads the whole content."""


class Found(_Sparse):
    """What a search found, each kind by itself, best first."""

    hint: str | None = None
    """What a model should know if nothing fits well."""
    memories: list[MemoryEntry]
    notes: list[NoteEntry]
    passages: list[PassageEntry]


def memory(of: muniment.Memory) -> Memory:
    return Memory(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        key=of.key,
        content=of.content,
        tags=list(of.tags),
        update_time=of.update_time,
    )


def memory_entry(of: muniment.Memory, part: str, most: int = WHOLE) -> MemoryEntry:
    """The content is whole if it has at most *most* code points. Otherwise it is the first *most* of *part*."""
    shown, whole = _shown(of.content, part, most)
    return MemoryEntry(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        key=of.key,
        content=shown,
        whole=whole,
        tags=list(of.tags),
        update_time=of.update_time,
    )


def usage(of: muniment.Usage) -> Usage:
    return Usage(used_chars=of.used_chars, limit_chars=of.limit_chars, percent=of.percent)


def note(of: muniment.Note) -> Note:
    return Note(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        note_id=of.note_id,
        content=of.content,
    )


def note_written(of: muniment.NoteWritten) -> NoteWritten:
    return NoteWritten(classification=LEVELS[of.note.classification], note_id=of.note.note_id, usage=usage(of.usage))


def block(of: muniment.Block) -> Block:
    return Block(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        label=of.label,
        content=of.content,
        read_only=of.shared,
    )


def passage(of: muniment.Passage) -> Passage:
    return Passage(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        passage_id=of.passage_id,
        content=of.content,
        author=of.author,
        tags=list(of.tags),
        event_time=of.event_time,
    )


def note_entry(of: muniment.Note, target: Target, part: str) -> NoteEntry:
    shown, whole = _shown(of.content, part, WHOLE)
    return NoteEntry(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        note_id=of.note_id,
        target=target,
        content=shown,
        whole=whole,
    )


def passage_entry(of: muniment.Passage, part: str, most: int = WHOLE) -> PassageEntry:
    """The content is whole if it has at most *most* code points. Otherwise it is the first *most* of *part*."""
    shown, whole = _shown(of.content, part, most)
    return PassageEntry(
        classification=LEVELS[of.classification],
        newer_below=_newer_below(of),
        integrity=_trusted(of),
        passage_id=of.passage_id,
        content=shown,
        whole=whole,
        author=of.author,
        tags=list(of.tags),
        event_time=of.event_time,
    )


def version(of: muniment.ItemVersion) -> Version:
    return Version(
        classification=LEVELS[of.classification],
        integrity=_trusted(of),
        content=of.content,
        tags=list(of.tags),
        update_time=of.update_time,
        replaced=of.replaced,
    )


def _newer_below(of: muniment.Memory | muniment.Note | muniment.Block | muniment.Passage) -> Level | None:
    return LEVELS[of.newer_below.classification] if of.newer_below else None


def _trusted(
    of: muniment.Memory | muniment.Note | muniment.Block | muniment.Passage | muniment.ItemVersion,
) -> Trusted | None:
    return "TRUSTED" if of.integrity is muniment.Integrity.TRUSTED else None


def _shown(content: str, part: str, most: int) -> tuple[str, bool]:
    """What of *content* to show, and whether that is all of it."""
    return (content, True) if len(content) <= most else (part[:most], False)
