"""Keyed memories, as one session sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import MemoryNotFound
from muniment_server.domain.records import ItemFilter, ItemKind, Memory, MemoryResult, Version
from muniment_server.items.store import Items
from muniment_server.monitor.session_scope import Fence


class Memories:
    """Memories at or below the session's taint; writes go to its own level."""

    def __init__(self, fence: Fence) -> None:
        self._items = Items(fence, ItemKind.MEMORY, MemoryNotFound)

    def save(
        self, key: str, content: str, *, tags: Sequence[str], expire_time: datetime | None, etag: Version | None
    ) -> Memory:
        """Create or replace the own-level version. Raises EtagStale, or InvalidArgument for a past *expire_time*."""
        row = self._items.save(key, content, tags=tags, expire_time=expire_time, etag=etag)
        return Memory(
            key=key,
            content=content,
            tags=tuple(tags),
            classification=Classification(row.level),
            version=Version(row.item_id, row.revision),
            create_time=row.create_time,
            update_time=row.update_time,
            expire_time=row.expire_time,
        )

    def get(self, key: str) -> Memory:
        """The highest visible version of *key*. Raises MemoryNotFound."""
        return _memory(self._items.get(key))

    def list(self, *, tag: str | None, after: str, limit: int) -> tuple[Sequence[Memory], bool]:
        """Up to *limit* memories by key, those after *after*; and whether there are more."""
        rows, more = self._items.list(tags=[tag] if tag else [], after=after, limit=limit)
        return [_memory(row) for row in rows], more

    def search(
        self, query: str, *, tags: Sequence[str], any_tag: bool, limit: int
    ) -> tuple[Sequence[MemoryResult], bool]:
        """Up to *limit* memories that match *query*, best first; and whether meaning was compared, too."""
        found = self._items.search(query, limit=limit, wanted=ItemFilter(tuple(tags), any_tag))
        results = [MemoryResult(_memory(match.row), match.score, match.snippet) for match in found.matches]
        return results, found.semantic

    def delete(self, key: str, *, etag: Version | None) -> Classification | None:
        """Delete the own-level version of *key*; return the level that is revealed.

        Raises EtagStale, WriteLevelMismatch or MemoryNotFound.
        """
        return self._items.delete(key, etag=etag)


def _memory(row: Any) -> Memory:
    return Memory(
        key=row.name,
        content=row.content,
        tags=tuple(row.tags),
        classification=Classification(row.level),
        version=Version(row.item_id, row.revision),
        create_time=row.create_time,
        update_time=row.update_time,
        expire_time=row.expire_time,
    )
