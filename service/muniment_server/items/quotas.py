"""Whether there is room for what a session writes.

What an agent stores is counted with each change. Before a write it is summed up, unless it was lately and there was
plenty of room: so a limit is exceeded by what is written at the same moment at most, and an agent far from its limits
pays nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muniment_server.domain.errors import ByteQuotaExceeded, ItemQuotaExceeded, RevisionQuotaExceeded
from muniment_server.domain.items import ItemKind
from muniment_server.domain.limits import KnownRoom
from muniment_server.monitor.session_scope import Query

_KNOWN_SECONDS = 10.0
_PLENTY_ITEMS = 20_000
_PLENTY_BYTES = 256 << 20
"""More than all servers together store for one agent while the room is taken as known."""


@dataclass(frozen=True, slots=True)
class _Room:
    max_items: int
    max_bytes: int
    max_revisions: int
    items: int
    bytes: int
    known: int
    """How many of the names are there already."""
    revision: int
    """The highest revision among them."""

    @property
    def is_plenty(self) -> bool:
        return (
            self.items + _PLENTY_ITEMS <= self.max_items
            and self.bytes + _PLENTY_BYTES <= self.max_bytes
            and self.revision + _PLENTY_ITEMS <= self.max_revisions
        )


def require_room(
    look_up: Callable[[Query[_Room]], list[_Room]],
    known: KnownRoom,
    kind: ItemKind,
    names: Sequence[str],
    contents: Sequence[str],
) -> None:
    """Check that one item for each name may be written, by a query at the level of the session, if need be.

    Raises ItemQuotaExceeded, ByteQuotaExceeded or RevisionQuotaExceeded.
    """
    if known.until > time.monotonic():
        return
    (room,) = look_up(Query("get_room", _Room, {"kind": kind, "names": list(names)}))
    new = len(names) - room.known
    if new and room.items + new > room.max_items:
        raise ItemQuotaExceeded
    if (new or kind is not ItemKind.PASSAGE) and room.bytes + sum(map(_size, contents)) > room.max_bytes:
        raise ByteQuotaExceeded
    if room.revision >= room.max_revisions and kind is not ItemKind.PASSAGE:
        raise RevisionQuotaExceeded
    if room.is_plenty:
        known.until = time.monotonic() + _KNOWN_SECONDS


def _size(content: str) -> int:
    return len(content.encode())
