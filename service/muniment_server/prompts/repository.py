"""What a session's prompt is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment_server.blocks.repository import block_of_row, list_query
from muniment_server.domain.errors import PromptTooLarge
from muniment_server.domain.notes import Shelf
from muniment_server.domain.prompt import PROMPT_BYTES
from muniment_server.domain.records import Block, Tier, Version
from muniment_server.monitor.session_scope import Fence, Query, held
from muniment_server.notes.repository import shelf_of_rows

_MOST_BLOCKS = 10_000
"""More than anybody reads; without a bound, a row for each empty block."""


class Prompts:
    """The blocks and notes at or below the session's taint, for its prompt."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence

    def read(self, *, blocks: bool, tiers: Sequence[Tier]) -> tuple[Sequence[Block], Shelf]:
        """The visible blocks, if asked for, and the notes, of which the prompt shows *tiers*. Raises PromptTooLarge."""

        def shown(answers: Sequence[Sequence[Any]]) -> list[Version]:
            shelf = self._shelf(answers[0])
            notes = [note.version for tier in tiers if shelf.enabled(tier) for note in shelf.notes(tier)]
            return [block.version for block in _blocks(answers)] + notes

        reads = [Query("note_versions", {})]
        if blocks:
            reads.append(list_query(after=("", ""), limit=_MOST_BLOCKS + 1, page_bytes=PROMPT_BYTES, overhead=0))
        answers = self._fence.read_all(reads, kind=None, shown=shown)
        return _blocks(answers), self._shelf(answers[0])

    def _shelf(self, rows: Sequence[Any]) -> Shelf:
        return shelf_of_rows(self._fence.session.taint, rows)


def _blocks(answers: Sequence[Sequence[Any]]) -> list[Block]:
    rows = [row for answer in answers[1:] for row in held(answer)]
    if len(rows) > _MOST_BLOCKS or (rows and rows[-1].bytes > PROMPT_BYTES):
        raise PromptTooLarge
    return [block_of_row(row) for row in rows]
