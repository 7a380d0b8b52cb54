"""Core blocks, as one session sees them: those of its agent, and those that other agents share with it.

Every write takes the write lock: an edit reads before it writes, and no other write may come between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from muniment_server.domain.blocks import BlockEdit, edited
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import BlockNotFound, EtagStale
from muniment_server.domain.items import PAGE_BYTES, Item, ItemKind, NewerBelow, Version
from muniment_server.items import item_store
from muniment_server.items.blocks import list_query
from muniment_server.items.item_store import NewVersion
from muniment_server.items.rows import BlockRow
from muniment_server.monitor.session_scope import Query, SessionScope

_OVERHEAD_BYTES = 512
"""The size of a block in a response beside its content, at most."""


@dataclass(frozen=True, slots=True)
class Block:
    """One version of one core block."""

    owner_agent_id: str
    label: str
    content: str
    shared: bool
    """Whether it belongs to another agent and is attached to this one."""
    security_label: Label
    version: Version
    create_time: datetime
    update_time: datetime
    newer_below: NewerBelow | None


def list_blocks(scope: SessionScope, *, after: tuple[str, str], limit: int) -> tuple[Sequence[Block], bool]:
    """Up to *limit* blocks after a label and owner; and whether there are more."""
    query = list_query(after=after, limit=limit + 1, page_bytes=PAGE_BYTES, overhead=_OVERHEAD_BYTES)
    rows, more = item_store.read_page(scope, query, ItemKind.BLOCK, limit)
    return [_block_of_row(row) for row in rows], more


def get(scope: SessionScope, label: str, *, owner_agent_id: str | None) -> Block:
    """The own block, else the first shared one by owner; or only that of one owner. Raises BlockNotFound."""
    rows = scope.look_up(Query("get_block", BlockRow, {"name": label, "owner_agent_id": owner_agent_id}))
    scope.record_read(ItemKind.BLOCK, [row.version for row in rows])
    if not rows:
        raise BlockNotFound
    return _block_of_row(rows[0])


def update(scope: SessionScope, label: str, content: str, *, etag: Version | None) -> Block:
    """Create or replace the own-level version. Raises EtagStale."""
    new = NewVersion(ItemKind.BLOCK, label, content, etag=etag)
    with scope.write_lock() as lock:
        saved = item_store.save_locked(scope, lock, new)
    return _own_block(lock.agent_id(), item_store.saved_item(new, saved.row()))


def edit(scope: SessionScope, label: str, change: BlockEdit, *, etag: Version | None) -> Block:
    """Edit the visible version of the own block, and write the result at the own level.

    Raises BlockNotFound, EtagStale, or what the edit raises.
    """
    with scope.write_lock() as lock:
        seen = lock.look_up(item_store.item_query(ItemKind.BLOCK, label))
        if not seen:
            raise BlockNotFound
        if etag is not None and etag != seen[0].version:
            raise EtagStale
        new = NewVersion(ItemKind.BLOCK, label, edited(seen[0].content, change), etag=etag)
        saved = item_store.save_locked(scope, lock, new)
    return _own_block(lock.agent_id(), item_store.saved_item(new, saved.row()))


def delete(scope: SessionScope, label: str, *, etag: Version | None) -> Label | None:
    """Delete the own-level version; return the level at which a lower one is seen from now on, if any.

    Raises EtagStale, WriteLevelMismatch or BlockNotFound.
    """
    with scope.write_lock() as lock:
        deleted = item_store.delete_locked(scope, lock, ItemKind.BLOCK, label, etag=etag)
    return item_store.revealed(ItemKind.BLOCK, deleted.row())


def _block_of_row(row: BlockRow) -> Block:
    return Block(
        owner_agent_id=row.owner_agent_id or row.agent_id,
        label=row.name,
        content=row.content,
        shared=row.owner_agent_id is not None,
        security_label=row.label,
        version=row.version,
        create_time=row.create_time,
        update_time=row.update_time,
        newer_below=row.newer_below,
    )


def _own_block(agent_id: str, item: Item) -> Block:
    return Block(
        owner_agent_id=agent_id,
        label=item.name,
        content=item.content,
        shared=False,
        security_label=item.label,
        version=item.version,
        create_time=item.create_time,
        update_time=item.update_time,
        newer_below=item.newer_below,
    )
