"""What a session's prompt is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muniment_server.domain.budgets import Tier
from muniment_server.domain.errors import PromptTooLarge
from muniment_server.domain.notes import NoteSet
from muniment_server.domain.prompt import PROMPT_BYTES
from muniment_server.items.blocks import list_query
from muniment_server.items.notes import NOTE_VERSIONS, note_set
from muniment_server.items.rows import ListedBlock
from muniment_server.monitor.session_scope import SessionScope

_MAX_BLOCKS = 10_000
"""Without a limit, empty blocks could be any number of rows."""


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The visible blocks, and the notes."""

    blocks: Sequence[ListedBlock]
    notes: NoteSet


def read(scope: SessionScope, *, blocks: bool, tiers: Sequence[Tier]) -> PromptParts:
    """The notes, of which the prompt shows *tiers*, and the visible blocks, if requested. Raises PromptTooLarge."""
    parts = _read(scope, blocks=blocks)
    shown = [note.version for tier in tiers if parts.notes.enabled(tier) for note in parts.notes.notes(tier)]
    scope.record_read(None, [*(block.version for block in parts.blocks), *shown])
    return parts


def _read(scope: SessionScope, *, blocks: bool) -> PromptParts:
    if not blocks:
        return PromptParts([], note_set(scope.taint, scope.look_up(NOTE_VERSIONS)))
    query = list_query(after=("", ""), limit=_MAX_BLOCKS + 1, page_bytes=PROMPT_BYTES, overhead=0)
    rows, found = scope.look_up_both(NOTE_VERSIONS, query)
    if len(found) > _MAX_BLOCKS or (found and found[-1].bytes > PROMPT_BYTES):
        raise PromptTooLarge
    return PromptParts(found, note_set(scope.taint, rows))
