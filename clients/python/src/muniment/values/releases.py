"""Releases to a lower level, or to TRUSTED."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification, Integrity, ItemKind, NamedEnum
from muniment.values.notes import Tier


class ReleaseState(NamedEnum):
    """How far a release is."""

    OPEN = 1
    RELEASED = 2
    REJECTED = 3
    EXPIRED = 4


@dataclass(frozen=True, slots=True)
class ReleasedText:
    """A text, and all that is stored with it."""

    name: str = field(repr=False)
    content: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    thread: str | None = field(repr=False)
    author: str | None = field(repr=False)
    tier: Tier | None = None
    """The tier of a note."""
    event_time: datetime | None = None
    """The event time of a passage."""
    expire_time: datetime | None = None
    """When the item expires. None: it does not."""


@dataclass(frozen=True, slots=True)
class ReplacedItem:
    """The item that sessions at the label of a release see under its name, until the release is written.

    If it has that label itself, the release overwrites it. Otherwise sessions at its own label still see it.
    """

    text: ReleasedText
    classification: Classification
    integrity: Integrity


@dataclass(frozen=True, slots=True)
class Release:
    """The release of one revision of an item to another label, as it was when it was read."""

    release_id: str
    agent_id: str
    kind: ItemKind | None
    """None for a kind that this client does not know."""
    item_id: str
    revision: int
    content_sha256: str
    """That of the content: see `content_sha256`."""
    source_classification: Classification
    source_integrity: Integrity
    classification: Classification
    """The level that it is released to."""
    integrity: Integrity
    """The integrity that it is released to."""
    state: ReleaseState | None
    """None for a state that this client does not know."""
    reason: str = field(repr=False)
    requester_host_key_id: str
    approver_host_key_ids: tuple[str, ...]
    required_approvals: int
    create_time: datetime
    expire_time: datetime
    refusal: str
    """Why the last attempt to write failed, as a reason of the contract. Empty if none did."""
    released_item_id: str | None
    released_revision: int | None
    text: ReleasedText | None = None
    """What it would write. `HostClient.get_release` shows it to keys that may review it, while the release is open."""
    replaced: ReplacedItem | None = None
    """What it would replace, shown with `text`. None if there is nothing, and for a passage."""


def content_sha256(content: str) -> str:
    """The hash by which releases name a text."""
    return hashlib.sha256(content.encode()).hexdigest()
