"""Items: their kinds, their versions, and the filters of lists and searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import Label
from muniment_server.domain.ids import ItemId

PAGE_BYTES = 3 * 1024 * 1024
"""The limit of a response: a page ends early rather than exceed it."""


class ItemKind(IntEnum):
    """A kind of item. The numbers are those of the contract and of the tables."""

    MEMORY = 1
    NOTE = 2
    BLOCK = 3
    PASSAGE = 4


@dataclass(frozen=True, slots=True)
class Version:
    """One version of one item: what an etag identifies. Revisions count from 1."""

    item_id: ItemId
    revision: int


@dataclass(frozen=True, slots=True)
class NewerBelow:
    """A version that is newer than the one that shadows it."""

    label: Label
    update_time: datetime


def newer_below(shown: Label, newest_label: Label, newest_time: datetime) -> NewerBelow | None:
    """The newest visible version of a name, if it is below the one that is *shown*."""
    return NewerBelow(newest_label, newest_time) if newest_label is not shown else None


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items to return. None and empty match all. Only passages have a thread and times."""

    name_prefix: str = ""
    """What names begin with, byte by byte."""
    tags: tuple[str, ...] = ()
    any_tag: bool = False
    """Whether one of the tags is enough. Otherwise an item must have all of them."""
    thread: str | None = None
    start_time: datetime | None = None
    """Inclusive."""
    end_time: datetime | None = None
    """Exclusive."""


ALL_ITEMS = ItemFilter()


@dataclass(frozen=True, slots=True)
class Item:
    """One version of one item. The name is a memory's key, a block's label, or the id of a note or passage.

    Only passages have a thread, an author and an event time; only notes are in another tier than MEMORY.
    """

    name: str
    tier: Tier
    content: str
    tags: Sequence[str]
    thread: str | None
    author: str | None
    event_time: datetime | None
    label: Label
    item_id: ItemId
    revision: int
    create_time: datetime
    update_time: datetime
    expire_time: datetime | None
    newest_label: Label
    """That of the newest visible version of the name."""
    newest_time: datetime

    @property
    def version(self) -> Version:
        """What the etag identifies."""
        return Version(self.item_id, self.revision)

    @property
    def newer_below(self) -> NewerBelow | None:
        """The newest visible version, if it is not this one."""
        return newer_below(self.label, self.newest_label, self.newest_time)
