"""Releases: requests of hosts to write an item at a label that it may not flow to by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from uuid import UUID

from muniment_server.domain.classification import Label
from muniment_server.domain.ids import HostKeyId, ItemId, SessionId
from muniment_server.domain.items import Item, ItemKind, Version

DEFAULT_TTL = timedelta(days=7)


class ReleaseState(IntEnum):
    """How far a release is. The numbers are those of the contract."""

    OPEN = 1
    RELEASED = 2
    REJECTED = 3
    EXPIRED = 4


@dataclass(frozen=True, slots=True)
class Release:
    """A release, as one host key sees it."""

    release_id: UUID
    agent_id: str
    kind: ItemKind
    item_id: ItemId
    revision: int
    content_hash: bytes
    source: Label
    target: Label
    reason: str
    requester: HostKeyId
    refusal: str
    """Why the last attempt to write failed: a reason of the contract, or empty."""
    writer: SessionId | None
    """The session of the last attempt to write."""
    new_item_id: ItemId | None
    new_revision: int | None
    create_time: datetime
    expire_time: datetime
    stored_state: ReleaseState
    """The state in the database, where no release is EXPIRED: see `state`."""
    is_late: bool
    """Whether its time is over."""
    required: int
    """How many keys must approve it."""
    approvers: Sequence[HostKeyId]
    """The keys that approve it, are valid and have the rights."""
    is_own: bool
    """Whether the key has asked for it."""
    is_allowed: bool
    """Whether the key has the rights that it needs."""
    has_approved: bool
    """Whether the key has approved it."""

    @property
    def state(self) -> ReleaseState:
        """How far it is now."""
        return ReleaseState.EXPIRED if self.is_late and self.stored_state is ReleaseState.OPEN else self.stored_state

    @property
    def version(self) -> Version:
        """What is released."""
        return Version(self.item_id, self.revision)

    @property
    def parties(self) -> str:
        """The release, its requester and approvers, as the reasons of audit events name them."""
        approvers = ", ".join(map(str, self.approvers))
        return f"release {self.release_id}, requested by {self.requester}, approved by {approvers}"

    def is_of(self, item: Item | None) -> bool:
        """Whether *item* is the revision that is released, with the same content."""
        return item is not None and (item.version, hash_of(item)) == (self.version, self.content_hash)


def hash_of(item: Item) -> bytes:
    """The SHA-256 of its content, which requests and approvals name."""
    return hashlib.sha256(item.content.encode()).digest()
