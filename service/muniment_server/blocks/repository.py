"""Core blocks, as one session sees them: its agent's own, and those attached to it.

Every write takes the lock of the shelf: an edit reads before it writes, and no other write may come between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment_server.domain.blocks import BlockEdit, edited
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import BlockNotFound, EtagStale
from muniment_server.domain.records import Block, ItemKind, Version
from muniment_server.items.store import delete_query, deleted, read_page, save_query, saved
from muniment_server.monitor.paging import PAGE_BYTES
from muniment_server.monitor.session_scope import Fence, Query, held

_OVERHEAD = 512
"""Bytes that a block takes in an answer beside its content, at most."""


class Blocks:
    """Blocks at or below the session's taint; writes go to its own level, and to its agent's own blocks."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence

    def list(self, *, after: tuple[str, str], limit: int) -> tuple[Sequence[Block], bool]:
        """Up to *limit* blocks by label and owner, those after *after*; and whether there are more."""
        read = list_query(after=after, limit=limit + 1, page_bytes=PAGE_BYTES, overhead=_OVERHEAD)
        rows, more = read_page(self._fence, read, ItemKind.BLOCK, limit)
        return [block_of_row(row) for row in rows], more

    def get(self, label: str, *, owner_agent_id: str | None) -> Block:
        """The own block, else the first shared one by owner; or that of one owner. Raises BlockNotFound."""
        read = Query("get_block", {"name": label, "owner_agent_id": owner_agent_id})
        return block_of_row(_found(self._fence.read(read, kind=ItemKind.BLOCK)))

    def update(self, label: str, content: str, *, etag: Version | None) -> Block:
        """Create or replace the own-level version. Raises EtagStale."""
        owner_agent_id, row = self._fence.write_on_shelf(save_query(ItemKind.BLOCK, label, content, etag=etag))
        return _written(owner_agent_id, label, content, row)

    def edit(self, label: str, edit: BlockEdit, *, etag: Version | None) -> Block:
        """Edit the version seen of the own block, and write the own-level one.

        Raises BlockNotFound, EtagStale, or what the edit raises.
        """
        owner_agent_id, rows = self._fence.lock_shelf("get_item", kind=ItemKind.BLOCK, name=label)
        seen = _found(rows)
        if etag is not None and etag != Version(seen.item_id, seen.revision):
            self._fence.commit_refusal("ETAG_STALE")
            raise EtagStale
        content = edited(seen.content, edit)
        (row,) = self._fence.commit([save_query(ItemKind.BLOCK, label, content, etag=etag)])
        return _written(owner_agent_id, label, content, row)

    def delete(self, label: str, *, etag: Version | None) -> Classification | None:
        """Delete the own-level version; return the level that is revealed.

        Raises EtagStale, WriteLevelMismatch or BlockNotFound.
        """
        _, row = self._fence.write_on_shelf(delete_query(ItemKind.BLOCK, label, etag=etag))
        return deleted(row, BlockNotFound)


def list_query(*, after: tuple[str, str], limit: int, page_bytes: int, overhead: int) -> Query:
    """Up to *limit* blocks after *after*, and up to the one that passes *page_bytes*, *overhead* for each included."""
    after_label, after_owner = after
    return Query(
        "list_blocks",
        {
            "after_label": after_label,
            "after_owner": after_owner,
            "limit": limit,
            "page_bytes": page_bytes,
            "overhead": overhead,
        },
    )


def block_of_row(row: Any) -> Block:
    """The block in a row of any of the queries on blocks."""
    owner_agent_id, shared = row.owner_agent_id or row.agent_id, row.owner_agent_id is not None
    return _block(owner_agent_id, row.name, row.content, row, shared=shared)


def _block(owner_agent_id: str, label: str, content: str, row: Any, *, shared: bool) -> Block:
    return Block(
        owner_agent_id=owner_agent_id,
        label=label,
        content=content,
        shared=shared,
        classification=Classification(row.level),
        version=Version(row.item_id, row.revision),
        create_time=row.create_time,
        update_time=row.update_time,
    )


def _written(owner_agent_id: str, label: str, content: str, row: Any) -> Block:
    """The block that a save stored. Raises EtagStale."""
    return _block(owner_agent_id, label, content, saved(row), shared=False)


def _found(rows: Sequence[Any]) -> Any:
    items = held(rows)
    if not items:
        raise BlockNotFound
    return items[0]
