"""Core blocks, own and shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification, Integrity
from muniment.values.versions import NewerBelow


@dataclass(frozen=True, slots=True)
class Block:
    """One version of one core block, as a session sees it: text that is always in the prompt.

    *shared*: it belongs to another agent, and is read-only. Pass the *etag* to a write to change only this
    version.
    """

    owner_agent_id: str
    label: str = field(repr=False)
    content: str = field(repr=False)
    shared: bool
    classification: Classification
    etag: str
    create_time: datetime
    update_time: datetime
    newer_below: NewerBelow | None = None
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class BlockPage:
    """One page of blocks. *classification* is the highest level among them, PUBLIC if there are none."""

    blocks: tuple[Block, ...]
    next_page_token: str = field(repr=False)
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)
