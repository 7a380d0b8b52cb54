"""The one item store: how items of every kind are written and read.

Memories, notes, blocks and passages are rows of one table for each level. They differ in what their name is (a key, an
id, a label), in the filters of their lists, and in the refusal that says that one does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import (
    BlockNotFound,
    EtagStale,
    FieldViolation,
    InvalidArgument,
    MemoryNotFound,
    NoteNotFound,
    PassageNotFound,
    Refusal,
    WriteLevelMismatch,
)
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import PAGE_BYTES, Item, ItemFilter, ItemKind, Version
from muniment_server.items.quotas import Written, require_room
from muniment_server.items.rows import Deleted, ItemVersion, ListedItem, Saved, StoredPassage
from muniment_server.monitor.session_scope import Pending, Query, SessionScope, Statement, WriteLock
from muniment_server.search import index
from muniment_server.search.search import filter_parameters

_FOLD_ONCE_IN = 64
"""After how many writes what is stored is folded, on average. Not by those that fold the term statistics."""
NOT_FOUND: Mapping[ItemKind, type[Refusal]] = {
    ItemKind.MEMORY: MemoryNotFound,
    ItemKind.NOTE: NoteNotFound,
    ItemKind.BLOCK: BlockNotFound,
    ItemKind.PASSAGE: PassageNotFound,
}


class Listed(Protocol):
    """A row of a page."""

    @property
    def bytes(self) -> int:
        """The size of the page up to and including this row."""
        ...

    @property
    def version(self) -> Version:
        """What the etag identifies."""
        ...


_L = TypeVar("_L", bound=Listed)


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to save at the session's own level."""

    kind: ItemKind
    name: str
    content: str
    tags: Sequence[str] = ()
    expire_time: datetime | None = None
    etag: Version | None = None
    """The version to replace. None replaces whatever is there, or creates the item."""
    tier: Tier = Tier.MEMORY
    position: int = 0
    """Orders what one transaction adds."""
    change_id: UUID | None = None
    """The id of the change, for one that must not be done twice. None: a new one."""


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage to store. Passages are written once."""

    passage_id: str
    """Empty: the server makes one."""
    content: str
    tags: tuple[str, ...]
    thread: str | None
    author: str | None
    event_time: datetime | None
    """None: the time it is stored."""
    expire_time: datetime | None
    change_id: UUID | None = None
    """As that of a version."""


class IndexedPassage(NamedTuple):
    """A passage, with the index entry of its text. To make that takes as long as to store the passage."""

    passage: NewPassage
    text: index.IndexedText


def get(scope: SessionScope, kind: ItemKind, name: str) -> Item:
    """The highest visible version of *name*. Raises the not-found error of the kind."""
    item = find(scope, kind, name)
    if item is None:
        raise NOT_FOUND[kind]
    return item


def find(scope: SessionScope, kind: ItemKind, name: str) -> Item | None:
    """The highest visible version of *name*, or None."""
    items = scope.look_up(item_query(kind, name))
    scope.record_read(kind, [item.version for item in items])
    return items[0] if items else None


def item_query(kind: ItemKind, name: str) -> Query[Item]:
    """The query for the highest visible version of *name*."""
    return Query("get_item", Item, {"kind": kind, "name": name})


def get_own_version(
    scope: SessionScope, kind: ItemKind, *, name: str | None = None, item_id: ItemId | None = None
) -> Item | None:
    """The live version at the session's own level of *name*, or of the item with an id. None if there is none."""
    query = (
        item_query(kind, name)
        if name is not None
        else Query("get_own_version", Item, {"kind": kind, "item_id": item_id})
    )
    items = [item for item in scope.look_up(query) if item.label is scope.taint]
    scope.record_read(kind, [item.version for item in items])
    return items[0] if items else None


def list_versions(
    scope: SessionScope,
    kind: ItemKind,
    name: str,
    *,
    owner_agent_id: str | None,
    with_revisions: bool,
    after: Sequence[int],
    limit: int,
) -> tuple[Sequence[ItemVersion], bool]:
    """Up to *limit* versions of one item, newest first, and whether more follow.

    *with_revisions* adds what each has replaced at its level.

    Without *owner_agent_id*: of the session's agent, or else of the first one, by id, that shares a block of that name.
    *after*: for each level, from the lowest, the last revision that was listed.
    """
    parameters = {
        "kind": kind,
        "name": name,
        "owner_agent_id": owner_agent_id,
        "with_revisions": with_revisions,
        "after_revisions": list(after),
        "limit": limit + 1,
        "page_bytes": PAGE_BYTES,
    }
    return read_page(scope, Query("list_versions", ItemVersion, parameters), kind, limit)


def list_by_name(
    scope: SessionScope, kind: ItemKind, wanted: ItemFilter, *, after: str, limit: int
) -> tuple[Sequence[Item], bool]:
    """Up to *limit* items after the name *after*, by name; and whether there are more."""
    parameters = {
        "kind": kind,
        "after": after,
        "limit": limit + 1,
        "page_bytes": PAGE_BYTES,
        **filter_parameters(wanted),
    }
    return read_page(scope, Query("list_items", ListedItem, parameters), kind, limit)


def read_page(scope: SessionScope, query: Query[_L], kind: ItemKind, limit: int) -> tuple[Sequence[_L], bool]:
    """One page: up to *limit* rows and up to PAGE_BYTES; and whether there are more.

    *query* returns up to one row more than *limit*, and the one that exceeds PAGE_BYTES.
    """
    rows = scope.look_up(query)
    page = [row for row in rows[:limit] if row.bytes <= PAGE_BYTES]
    scope.record_read(kind, [row.version for row in page])
    return page, len(page) < len(rows)


def save(scope: SessionScope, new: NewVersion) -> Item:
    """Create or replace the own-level version; return what is stored. Raises EtagStale, QuotaExceeded, or
    InvalidArgument if it expires in the past.
    """
    new = _expiring(scope, new)
    require_room(scope.look_up, scope.room, new.kind, [_written(new)])
    query, then = save_statements(scope, new)
    return saved_item(new, scope.write(query, *then)[0])


def delete(scope: SessionScope, kind: ItemKind, name: str, *, etag: Version | None) -> Label | None:
    """Delete the own-level version; return the level at which a lower one is seen from now on, if any.

    Raises EtagStale, WriteLevelMismatch, or the not-found error of the kind.
    """
    query, then = delete_statements(scope, kind, name, etag=etag)
    return revealed(kind, scope.write(query, *then)[0])


def save_locked(scope: SessionScope, lock: WriteLock, new: NewVersion) -> Pending[Saved]:
    """The same as `save`, under a write lock. The result goes to `saved_item` after the commit."""
    require_room(lock.look_up, scope.room, new.kind, [_written(new)])
    query, then = save_statements(scope, new)
    return lock.write(query, *then)


def save_all_locked(scope: SessionScope, lock: WriteLock, versions: Sequence[NewVersion]) -> list[Saved]:
    """The same as `save_locked` for versions of different names, of one kind that is searched; a row for each.

    Unless all outcomes are OK, the transaction must not be committed. Rows are locked in the order of their names, as
    in every other transaction that writes several: otherwise two of them could deadlock.
    """
    versions = [_expiring(scope, new) for new in versions]
    kind, change_id = versions[0].kind, scope.new_uuid()
    require_room(lock.look_up, scope.room, kind, [_written(new) for new in versions])
    by_name = sorted(versions, key=lambda new: new.name)
    changes = [_save_query(scope, new) for new in by_name]
    entries = [_entry(new, one_id) for new, (_, one_id) in zip(by_name, changes, strict=True)]
    then = (*index.update(scope, kind, entries, change_id), *fold(scope, change_id))
    *others, last = [query for query, _ in changes]
    pending = [*map(lock.write, others), lock.write(last, *then)]
    rows = {new.name: saved.row() for new, saved in zip(by_name, pending, strict=True)}
    return [rows[new.name] for new in versions]


def delete_locked(
    scope: SessionScope, lock: WriteLock, kind: ItemKind, name: str, *, etag: Version | None = None
) -> Pending[Deleted]:
    """The same as `delete`, under a write lock. The result goes to `revealed` after the commit."""
    query, then = delete_statements(scope, kind, name, etag=etag)
    return lock.write(query, *then)


def save_statements(scope: SessionScope, new: NewVersion) -> tuple[Query[Saved], Sequence[Statement]]:
    """The statement that saves *new*, and those that update the search index. Blocks are not indexed."""
    query, change_id = _save_query(scope, new)
    then: Sequence[Statement] = ()
    if new.kind is not ItemKind.BLOCK:
        then = tuple(index.update(scope, new.kind, [_entry(new, change_id)], change_id))
    return query, (*then, *fold(scope, change_id))


def _save_query(scope: SessionScope, new: NewVersion) -> tuple[Query[Saved], UUID]:
    """The statement that saves *new*, and the id of the change."""
    item_id, new_id = _new_ids(scope)
    change_id = new.change_id or new_id
    parameters = {
        "item_id": item_id,
        "change_id": change_id,
        "successor_id": scope.new_uuid(),
        "kind": new.kind,
        "name": new.name,
        "content": new.content,
        "tags": list(new.tags),
        "expire_time": new.expire_time,
        "tier": new.tier,
        "position": new.position,
        **etag_parameters(new.etag),
    }
    return Query("save_item", Saved, parameters), change_id


def _entry(new: NewVersion, change_id: UUID) -> index.IndexEntry:
    return index.entry(new.kind, new.name, change_id, new.content, tags=new.tags)


def saved_item(new: NewVersion, row: Saved) -> Item:
    """The item that a save stored. Raises EtagStale, or InvalidArgument if it expires in the past."""
    if row.outcome == "ETAG_STALE":
        raise EtagStale
    if row.outcome == "PAST":
        raise expired("expire_time")
    return Item(
        name=new.name,
        tier=new.tier,
        content=new.content,
        tags=new.tags,
        thread=None,
        author=None,
        event_time=None,
        label=row.label,
        item_id=row.item_id,
        revision=row.revision,
        create_time=row.create_time,
        update_time=row.update_time,
        expire_time=row.expire_time,
        newest_label=row.label,
        newest_time=row.update_time,
    )


def delete_statements(
    scope: SessionScope, kind: ItemKind, name: str, *, etag: Version | None
) -> tuple[Query[Deleted], Sequence[Statement]]:
    """The statement that deletes the own-level version of *name*, and those that update the search index."""
    _, change_id = _new_ids(scope)
    parameters = {"change_id": change_id, "kind": kind, "name": name, **etag_parameters(etag)}
    then: Sequence[Statement] = ()
    if kind is not ItemKind.BLOCK:
        then = tuple(index.update(scope, kind, [index.no_entry(name, change_id)], change_id))
    return Query("delete_item", Deleted, parameters), then


def revealed(kind: ItemKind, row: Deleted) -> Label | None:
    """The level that a delete revealed. Raises EtagStale, WriteLevelMismatch or the not-found error of the kind."""
    match row.outcome:
        case "OK":
            return row.revealed
        case "ETAG_STALE":
            raise EtagStale
        case "WRITE_LEVEL_MISMATCH":
            raise WriteLevelMismatch
    raise NOT_FOUND[kind]


def indexed(passage: NewPassage) -> IndexedPassage:
    """A passage as `store_passages` takes it."""
    text = index.indexed_text(ItemKind.PASSAGE, "", passage.content, author=passage.author, tags=passage.tags)
    return IndexedPassage(passage, text)


def store_passages(
    scope: SessionScope, batch: Sequence[IndexedPassage], *, more_follow: bool = False
) -> list[StoredPassage]:
    """Store passages in order, up to the first refused one; return one row for each. Raises QuotaExceeded.

    With *more_follow*, another batch comes soon, so more entries may wait to be merged into the index.
    """
    expiry = scope.expiry_of(ItemKind.PASSAGE)
    rows = [_passage_row(scope, position, one.passage, expiry) for position, one in enumerate(batch)]
    entries = [index.entry_of(row["name"], row["change_id"], one.text) for row, one in zip(rows, batch, strict=True)]
    require_room(scope.look_up, scope.room, ItemKind.PASSAGE, [Written(row["name"], row["content"]) for row in rows])
    change_id = scope.new_uuid()
    parameters = {"passages": json.dumps(rows, default=str), "count": len(rows), "change_id": change_id}
    waiting = (Statement("let_entries_wait", {}),) if more_follow else ()
    then = (*waiting, *index.update(scope, ItemKind.PASSAGE, entries, change_id), *fold(scope, change_id))
    return scope.write(Query("store_passages", StoredPassage, parameters), *then)


def _expiring(scope: SessionScope, new: NewVersion) -> NewVersion:
    """*new*, with the expire time that it gets if it names none."""
    return new if new.expire_time else replace(new, expire_time=scope.expiry_of(new.kind))


def _written(new: NewVersion) -> Written:
    return Written(new.name, new.content, new.tags, new.expire_time)


def fold(scope: SessionScope, change_id: UUID) -> Sequence[Statement]:
    """Now and then, the statement that compacts what is counted."""
    return (Statement("fold_storage", {"fold_id": scope.new_uuid()}),) if change_id.int % _FOLD_ONCE_IN == 1 else ()


def expired(field: str) -> InvalidArgument:
    """The refusal of an item whose expire time, in *field*, is not in the future."""
    return InvalidArgument(FieldViolation(field, "must be in the future"))


def _new_ids(scope: SessionScope) -> tuple[UUID, UUID]:
    """The id of an item, if the write creates one, and the id of the change."""
    return scope.new_uuid(), scope.new_uuid()


def _passage_row(scope: SessionScope, position: int, passage: NewPassage, expiry: datetime | None) -> dict[str, Any]:
    expire_time = passage.expire_time or expiry
    return {
        "position": position,
        "name": passage.passage_id or str(scope.new_uuid()),
        "item_id": scope.new_uuid(),
        "change_id": passage.change_id or scope.new_uuid(),
        "content": passage.content,
        "tags": passage.tags,
        "thread": passage.thread,
        "author": passage.author,
        "event_time": passage.event_time and passage.event_time.isoformat(),
        "expire_time": expire_time and expire_time.isoformat(),
    }


def etag_parameters(version: Version | None) -> dict[str, object]:
    """The parameters of a write that changes only *version*, if it is not None."""
    return {"etag_item": version and version.item_id, "etag_revision": version and version.revision}
