"""The rows of the item store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import Label
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import Item, NewerBelow, Version, newer_below


@dataclass(frozen=True, slots=True)
class ListedItem(Item):
    """An item of a page."""

    bytes: int
    """The size of the page up to and including this item."""


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One version of one core block, own or shared."""

    agent_id: str
    """The session's agent."""
    owner_agent_id: str | None
    """The owner of a shared block; None for an own block."""
    name: str
    content: str
    label: Label
    item_id: ItemId
    revision: int
    create_time: datetime
    update_time: datetime
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


@dataclass(frozen=True, slots=True)
class ListedBlock(BlockRow):
    """A block of a page, or of a prompt."""

    bytes: int
    """The size of the page up to and including this block; for a prompt, of this block and all that are smaller."""


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """The version of a name at one level, or what it has replaced there."""

    content: str
    tags: Sequence[str]
    label: Label
    item_id: ItemId
    revision: int
    update_time: datetime
    expire_time: datetime | None
    replaced: bool
    owner_agent_id: str
    bytes: int
    """The size of the page up to and including this version."""

    @property
    def version(self) -> Version:
        """What the etag identifies."""
        return Version(self.item_id, self.revision)


@dataclass(frozen=True, slots=True)
class NoteRow:
    """One visible version of one note, with the settings of the agent; or the settings alone, if there are no notes."""

    memory_enabled: bool
    user_profile_enabled: bool
    memory_char_limit: int
    user_char_limit: int
    name: str | None
    tier: Tier
    content: str
    label: Label
    item_id: ItemId
    revision: int
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save stored, or why it did not: outcome OK, ETAG_STALE or PAST."""

    outcome: str
    label: Label
    item_id: ItemId
    revision: int
    create_time: datetime
    update_time: datetime
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a delete did: outcome OK, ETAG_STALE, WRITE_LEVEL_MISMATCH or NOT_FOUND."""

    outcome: str
    revealed: Label | None
    """The label with which a lower version is seen from now on."""


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """What became of a passage: outcome OK, EXISTS, ALREADY_EXISTS, PAST, or None if it is undecided.

    It is undecided because of an earlier passage of its batch, or of another writer. The rest describes the stored
    passage, if there is one.
    """

    outcome: str | None
    name: str
    content: str
    label: Label
    tags: Sequence[str]
    thread: str | None
    author: str | None
    event_time: datetime
    create_time: datetime
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class DeletedItem:
    """The item that was deleted last of a name, unless one is live. item_id is None if there is none to bring back."""

    is_live: bool
    item_id: ItemId | None
    revision: int
    tier: Tier
    content: str
    tags: Sequence[str]
    author: str | None


@dataclass(frozen=True, slots=True)
class DeletedItems:
    """What a delete of several items did."""

    names: Sequence[str]
    more: bool
    """Whether there are more that it could delete."""


@dataclass(frozen=True, slots=True)
class ReleasedItem:
    """The item that is being renamed. Outcome OK, ETAG_STALE, WRITE_LEVEL_MISMATCH, NOT_FOUND or ALREADY_EXISTS."""

    outcome: str
    revealed: Label | None
    """The label with which a lower version of the old name is seen from now on."""
    label: Label
    time: datetime
    item_id: ItemId
    revision: int
    content: str
    tags: Sequence[str]
    create_time: datetime
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class Undeleted:
    """Whether an item is back. If not, the transaction must not be committed."""

    is_back: bool
