"""What a session's prompt is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muniment_server.domain.budgets import Tier
from muniment_server.domain.items import Version
from muniment_server.domain.notes import Note, NoteSet
from muniment_server.domain.prompt import PROMPT_BYTES
from muniment_server.items.blocks import prompt_query
from muniment_server.items.notes import NOTE_VERSIONS, note_set
from muniment_server.items.rows import ListedBlock
from muniment_server.monitor.session_scope import SessionScope

_MAX_BLOCKS = 10_000
"""Without a limit, empty blocks could be any number of rows."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Blocks and notes, in the order of a prompt."""

    blocks: Sequence[ListedBlock]
    tiers: Mapping[Tier, Sequence[Note]]

    def versions(self) -> Iterator[Version]:
        """The versions of all blocks and notes."""
        yield from (block.version for block in self.blocks)
        yield from (note.version for notes in self.tiers.values() for note in notes)

    def only(self, wanted: frozenset[Version]) -> Contents:
        """The *wanted* blocks and notes."""
        return Contents(
            [block for block in self.blocks if block.version in wanted],
            {tier: [note for note in notes if note.version in wanted] for tier, notes in self.tiers.items()},
        )


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a prompt can show, and the notes of both tiers."""

    contents: Contents
    notes: NoteSet
    more: bool
    """Whether there are more blocks than a prompt can have."""

    @property
    def complete(self) -> bool:
        """Whether all blocks were read with their content."""
        return not self.more and all(block.bytes <= PROMPT_BYTES for block in self.contents.blocks)


def read(scope: SessionScope, *, blocks: bool, tiers: Sequence[Tier]) -> PromptParts:
    """The notes, of which the prompt shows *tiers*, and the visible blocks, if requested."""
    found, notes = _read(scope, blocks=blocks)
    shown = {tier: notes.notes(tier) for tier in tiers if notes.enabled(tier)}
    contents = Contents(found[:_MAX_BLOCKS], shown)
    scope.record_read(None, list(contents.versions()))
    return PromptParts(contents, notes, more=len(found) > _MAX_BLOCKS)


def _read(scope: SessionScope, *, blocks: bool) -> tuple[Sequence[ListedBlock], NoteSet]:
    if not blocks:
        return [], note_set(scope.taint, scope.look_up(NOTE_VERSIONS))
    query = prompt_query(limit=_MAX_BLOCKS + 1, most_bytes=PROMPT_BYTES)
    rows, found = scope.look_up_both(NOTE_VERSIONS, query)
    return found, note_set(scope.taint, rows)
