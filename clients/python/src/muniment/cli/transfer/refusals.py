"""Asks the server which items it would refuse. The rules are the server's, and nothing is written.

A call names the items that are refused. It is repeated with those that are left, until nothing is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TypeVar

from muniment import (
    AddNote,
    BudgetExceeded,
    InvalidArgument,
    NewMemory,
    NewPassage,
    NoteExists,
    SessionClient,
    TierDisabled,
    WriteLevelMismatch,
)
from muniment._batches import batches
from muniment.cli.transfer.items import BlockItem, Item, MemoryItem, NoteItem, PassageItem
from muniment.cli.transfer.sessions import Sessions

_I = TypeVar("_I", bound=Item)
STREAM = 500
"""How many passages one call sends."""
STREAM_SECONDS = 600.0
MAX_EDITS = 100
"""How many edits of notes one call sends."""
MAX_EDIT_BYTES = 512 * 1024
"""The size limit of their content. A request may have 1 MiB, and a note nearly as much."""
_PLACE = re.compile(r"(?:passage|memories\[(?P<memory>[0-9]+)\]|edits\[(?P<edit>[0-9]+)\]\.\w+)\.")
"""Where in a request a field is."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that the server refuses, and the rules that it breaks."""

    item: Item
    rules: str

    def __str__(self) -> str:
        return f"{self.item.where}: {self.rules}"


def refusals(items: Iterable[Item], sessions: Sessions) -> Iterator[Refusal]:
    """The items that the server would refuse at their levels."""
    by_level = sorted(items, key=lambda item: item.level)
    for level, same in groupby(by_level, key=lambda item: item.level):
        yield from _refused_of(list(same), sessions[level])


def _refused_of(items: Sequence[Item], session: SessionClient) -> Iterator[Refusal]:
    blocks = [item for item in items if isinstance(item, BlockItem)]
    for block in blocks:
        yield from _refused([block], lambda each: session.check_block(each[0].label, each[0].content))
    for few in batches(item for item in items if isinstance(item, MemoryItem)):
        yield from _refused(few, lambda each: session.save_memories(map(new_memory, each), validate_only=True))
    for passages in grouped((item for item in items if isinstance(item, PassageItem)), STREAM):
        yield from _refused(passages, lambda each: _check_passages(session, each))
    for notes in _note_batches(item for item in items if isinstance(item, NoteItem)):
        yield from _refused(notes, lambda each: _check_notes(session, each))


def _refused(items: Sequence[_I], check: Callable[[Sequence[_I]], object]) -> Iterator[Refusal]:
    left = list(items)
    while left:
        try:
            check(left)
            return
        except InvalidArgument as error:
            rules = rules_by_place(error)
        yield from (Refusal(left[place], rule) for place, rule in sorted(rules.items()))
        left = [item for place, item in enumerate(left) if place not in rules]


def _check_passages(session: SessionClient, items: Sequence[PassageItem]) -> None:
    session.import_passages(map(new_passage, items), validate_only=True, timeout=STREAM_SECONDS)


def _check_notes(session: SessionClient, items: Sequence[NoteItem]) -> None:
    """Check the fields of notes, in whichever tier. Whether they fit is asked when they are planned."""
    edits = [AddNote(item.content, note_id=item.note_id) for item in items]
    try:
        session.edit_notes(edits, tier=items[0].tier, validate_only=True)
    except (BudgetExceeded, TierDisabled, NoteExists, WriteLevelMismatch):
        return


def _note_batches(notes: Iterable[NoteItem]) -> Iterator[list[NoteItem]]:
    few: list[NoteItem] = []
    size = 0
    for note in notes:
        size += len(note.content.encode())
        if few and (len(few) == MAX_EDITS or size > MAX_EDIT_BYTES):
            yield few
            few, size = [], len(note.content.encode())
        few.append(note)
    if few:
        yield few


def rules_by_place(error: InvalidArgument) -> Mapping[int, str]:
    """The rules that are broken, by the place of the item in the request. A stream ends at the first refusal."""
    progress = error.progress
    stopped = progress.stored_count + progress.existing_count if progress else 0
    rules: dict[int, list[str]] = {}
    for violation in error.violations:
        found = _PLACE.match(violation.field)
        place = int((found and (found["memory"] or found["edit"])) or stopped)
        rules.setdefault(place, []).append(f"{_PLACE.sub('', violation.field, count=1)} {violation.description}")
    return {place: "; ".join(texts) for place, texts in rules.items()} or {stopped: error.message}


def grouped(items: Iterable[_I], count: int) -> Iterator[list[_I]]:
    """*items*, *count* at a time."""
    each = iter(items)
    while few := list(islice(each, count)):
        yield few


def new_memory(item: MemoryItem) -> NewMemory:
    """The memory to save."""
    return NewMemory(item.key, item.content, item.tags, item.expire_time)


def new_passage(item: PassageItem) -> NewPassage:
    """The passage to store."""
    return NewPassage(
        item.content,
        tags=item.tags,
        thread=item.thread,
        author=item.author,
        event_time=item.event_time,
        passage_id=item.passage_id,
        expire_time=item.expire_time,
    )
