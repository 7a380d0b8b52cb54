"""Items of any kind, as one session sees them: the one way in which anything remembered is written and read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import EtagStale, Refusal, WriteLevelMismatch
from muniment_server.domain.paging import PAGE_BYTES
from muniment_server.domain.records import ItemKind, Version
from muniment_server.store.fence import Fence


class Items:
    """The items of one kind."""

    def __init__(self, fence: Fence, kind: ItemKind, not_found: type[Refusal]) -> None:
        self._fence = fence
        self._kind = kind
        self._not_found = not_found

    def save(
        self, name: str, content: str, *, tags: Sequence[str], expire_time: datetime | None, etag: Version | None
    ) -> Any:
        """Create or replace the own-level version; return what is stored. Raises EtagStale."""
        row = self._fence.write(
            "save_item",
            kind=self._kind,
            name=name,
            content=content,
            tags=list(tags),
            expire_time=expire_time,
            tier=1,
            position=0,
            **_etag(etag),
        )
        if row.outcome == "ETAG_STALE":
            raise EtagStale
        return row

    def get(self, name: str) -> Any:
        """The highest visible version of *name*."""
        rows = self._fence.read("get_item", kind=self._kind, name=name)
        if not rows:
            raise self._not_found
        return rows[0]

    def list(self, *, tags: Sequence[str], after: str, limit: int) -> tuple[Sequence[Any], bool]:
        """Up to *limit* items by name, those after *after*; and whether there are more."""
        rows = self._fence.read(
            "list_items", kind=self._kind, tags=list(tags), after=after, limit=limit + 1, page_bytes=PAGE_BYTES
        )
        page = [row for row in rows[:limit] if row.bytes <= PAGE_BYTES]
        return page, len(page) < len(rows)

    def search(self, query: str, *, tags: Sequence[str], any_tag: bool, limit: int) -> Sequence[Any]:
        """Up to *limit* items that match *query*, best first."""
        return self._fence.read(
            "search_items",
            kind=self._kind,
            query=query,
            tags=list(tags),
            any_tag=any_tag and bool(tags),
            limit=limit,
            page_bytes=PAGE_BYTES,
        )

    def delete(self, name: str, *, etag: Version | None) -> Classification | None:
        """Delete the own-level version; return the level at which a lower one is seen from now on.

        Raises EtagStale, WriteLevelMismatch or the not-found of the kind.
        """
        row = self._fence.write("delete_item", kind=self._kind, name=name, **_etag(etag))
        match row.outcome:
            case "OK":
                return row.revealed and Classification(row.revealed)
            case "ETAG_STALE":
                raise EtagStale
            case "WRITE_LEVEL_MISMATCH":
                raise WriteLevelMismatch
        raise self._not_found


def _etag(version: Version | None) -> dict[str, object]:
    return {"etag_item": version and version.item_id, "etag_revision": version and version.revision}
