"""Items of any kind, as one session sees them: the one way in which anything remembered is written and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import EtagStale, Refusal, WriteLevelMismatch
from muniment_server.domain.records import ALL_ITEMS, ItemFilter, ItemKind, Tier, Version
from muniment_server.monitor.paging import PAGE_BYTES
from muniment_server.monitor.session_scope import Fence, Query, held
from muniment_server.search.index import Text, index_query, nothing_of, text_of
from muniment_server.search.searcher import Search


class Match(NamedTuple):
    """One match of a search."""

    row: Any
    score: float
    snippet: str


class Found(NamedTuple):
    """What a search found, best first, and whether meaning was compared, too."""

    matches: Sequence[Match]
    semantic: bool


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
        return saved(
            self._fence.write(
                save_query(
                    self._kind,
                    name,
                    content,
                    tags=tags,
                    expire_time=expire_time,
                    etag=etag,
                    text=text_of(self._kind, name, content, tags=tags),
                )
            )
        )

    def get(self, name: str) -> Any:
        """The highest visible version of *name*."""
        rows = held(self._fence.read(Query("get_item", {"kind": self._kind, "name": name}), kind=self._kind))
        if not rows:
            raise self._not_found
        return rows[0]

    def list(self, *, tags: Sequence[str], after: str, limit: int) -> tuple[Sequence[Any], bool]:
        """Up to *limit* items by name, those after *after*; and whether there are more."""
        parameters = {
            "kind": self._kind,
            "tags": list(tags),
            "after": after,
            "limit": limit + 1,
            "page_bytes": PAGE_BYTES,
        }
        return read_page(self._fence, Query("list_items", parameters), self._kind, limit)

    def search(self, query: str, *, limit: int, tier: Tier = Tier.MEMORY, wanted: ItemFilter = ALL_ITEMS) -> Found:
        """Up to *limit* items that match *query*, best first. All but notes are in the first tier."""
        search = Search(self._fence, self._kind, query)
        rows = search.results(limit=limit, tier=tier, **filter_columns(wanted))
        return Found([Match(row, row.score, search.snippet(row)) for row in rows], search.semantic)

    def delete(self, name: str, *, etag: Version | None) -> Classification | None:
        """Delete the own-level version; return the level at which a lower one is seen from now on.

        Raises EtagStale, WriteLevelMismatch or the not-found of the kind.
        """
        return deleted(self._fence.write(delete_query(self._kind, name, etag=etag)), self._not_found)


def save_query(
    kind: ItemKind,
    name: str,
    content: str,
    *,
    tags: Sequence[str] = (),
    expire_time: datetime | None = None,
    etag: Version | None = None,
    tier: Tier = Tier.MEMORY,
    position: int = 0,
    text: Text | None = None,
) -> Query:
    """The one statement that writes a memory, note or block. *position* orders what one transaction adds.

    *text* is what search finds of it.
    """
    parameters = {
        "kind": kind,
        "name": name,
        "content": content,
        "tags": list(tags),
        "expire_time": expire_time,
        "tier": tier,
        "position": position,
    }
    return Query("save_item", parameters | _etag(etag), _indexing(kind, text))


def saved(row: Any) -> Any:
    """The row of a save, unless it was refused. Raises EtagStale."""
    if row.outcome == "ETAG_STALE":
        raise EtagStale
    return row


def delete_query(kind: ItemKind, name: str, *, etag: Version | None = None) -> Query:
    """The one statement that deletes an item of any kind."""
    text = None if kind is ItemKind.BLOCK else nothing_of(name)
    return Query("delete_item", {"kind": kind, "name": name, **_etag(etag)}, _indexing(kind, text))


def deleted(row: Any, not_found: type[Refusal]) -> Classification | None:
    """The level that a deletion reveals. Raises EtagStale, WriteLevelMismatch or *not_found*."""
    match row.outcome:
        case "OK":
            return row.revealed and Classification(row.revealed)
        case "ETAG_STALE":
            raise EtagStale
        case "WRITE_LEVEL_MISMATCH":
            raise WriteLevelMismatch
    raise not_found


def read_page(fence: Fence, read: Query, kind: ItemKind, limit: int) -> tuple[Sequence[Any], bool]:
    """The rows of one page: up to *limit*, and up to PAGE_BYTES; and whether there are more.

    *read* asks for one row more than *limit*, and for the one that passes PAGE_BYTES.
    """

    def page(rows: Sequence[Any]) -> Sequence[Any]:
        return [row for row in held(rows)[:limit] if row.bytes <= PAGE_BYTES]

    rows = fence.read(read, kind=kind, shown=page)
    return page(rows), len(page(rows)) < len(held(rows))


def filter_columns(wanted: ItemFilter) -> dict[str, object]:
    """The parameters of the queries that filter."""
    return {
        "tags": list(wanted.tags),
        "any_tag": wanted.any_tag and bool(wanted.tags),
        "thread": wanted.thread,
        "start_time": wanted.start_time,
        "end_time": wanted.end_time,
    }


def _indexing(kind: ItemKind, text: Text | None) -> Callable[[UUID], Query] | None:
    if text is None:
        return None
    return lambda change_id: index_query(kind, [{**text, "change_id": str(change_id)}])


def _etag(version: Version | None) -> dict[str, object]:
    return {"etag_item": version and version.item_id, "etag_revision": version and version.revision}
