"""Whether there is room for what a session writes.

Each change records what it adds. Before a write the sum is read, unless it was read in the last 10 seconds and was far
below the limits. So a limit is exceeded at most by writes made at the same moment, and an agent far below its limits
pays nothing. The limit of revisions holds for one item, but room that was found for one counts for all items of the
session: for those seconds, a full one may get further revisions. They count as bytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from muniment_server.domain.errors import ByteQuotaExceeded, ItemQuotaExceeded, RevisionQuotaExceeded
from muniment_server.domain.items import ItemKind
from muniment_server.domain.limits import KnownRoom
from muniment_server.monitor.session_scope import Query

_KNOWN_SECONDS = 10.0
_PLENTY_ITEMS = 20_000
_PLENTY_BYTES = 256 << 20
"""Room that needs no second look: more than all servers together store for one agent in _KNOWN_SECONDS."""


@dataclass(frozen=True, slots=True)
class Written:
    """What is to be stored under one name."""

    name: str
    content: str
    tags: Sequence[str] = ()
    expire_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Room:
    max_items: int
    max_bytes: int
    max_revisions: int
    items: int
    bytes: int
    existing: int
    """How many of the names have an item already."""
    changed: int
    """For how many of them something would be stored."""
    changed_bytes: int
    revision: int
    """The highest revision that would be replaced."""

    @property
    def is_plenty(self) -> bool:
        return (
            self.items + _PLENTY_ITEMS <= self.max_items
            and self.bytes + _PLENTY_BYTES <= self.max_bytes
            and self.revision + _PLENTY_ITEMS <= self.max_revisions
        )


LookUp: TypeAlias = Callable[[Query[_Room]], list[_Room]]
"""Runs a query as the session, with or without a write lock."""


def require_room(
    look_up: LookUp,
    known: KnownRoom,
    kind: ItemKind,
    written: Sequence[Written],
    *,
    revision: int = 0,
    is_rename: bool = False,
) -> None:
    """Check that the limits allow *written*, under different names. A write that changes nothing is always allowed.

    *revision* is the last one of an item that is undeleted or renamed. A rename adds no item. Asks the database unless
    there was plenty of room lately.

    Raises ItemQuotaExceeded, ByteQuotaExceeded or RevisionQuotaExceeded.
    """
    if known.until > time.monotonic():
        return
    versions = json.dumps([_version(kind, one) for one in written])
    (room,) = look_up(Query("get_room", _Room, {"kind": kind, "versions": versions}))
    new = 0 if is_rename else len(written) - room.existing
    if new and room.items + new > room.max_items:
        raise ItemQuotaExceeded
    if room.changed and room.bytes + room.changed_bytes > room.max_bytes:
        raise ByteQuotaExceeded
    if max(room.revision, revision) >= room.max_revisions:
        raise RevisionQuotaExceeded
    if room.is_plenty:
        known.until = time.monotonic() + _KNOWN_SECONDS


def _version(kind: ItemKind, written: Written) -> dict[str, object]:
    """One of the versions that `get_room` takes. Passages never change, so their contents are not compared."""
    return {
        "name": written.name,
        "size": len(written.content.encode()),
        "content": None if kind is ItemKind.PASSAGE else written.content,
        "tags": written.tags,
        "expire_time": written.expire_time and written.expire_time.isoformat(),
    }
