"""How an item gets another name, at the level of its session.

Its row is deleted and comes back under the new name, as a deleted item comes back. An UPDATE would fail if another
writer takes the name meanwhile, and Postgres would log the name.
"""

from __future__ import annotations

from collections.abc import Mapping

from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import Conflict, EtagStale, MemoryExists, MemoryNotFound, Refusal, WriteLevelMismatch
from muniment_server.domain.items import Item, ItemKind, Version
from muniment_server.items.item_store import etag_parameters, fold
from muniment_server.items.quotas import Written, require_room
from muniment_server.items.rows import ReleasedItem, Undeleted
from muniment_server.monitor.session_scope import Query, SessionScope, WriteLock
from muniment_server.search import index

_REFUSED: Mapping[str, type[Refusal]] = {
    "ETAG_STALE": EtagStale,
    "WRITE_LEVEL_MISMATCH": WriteLevelMismatch,
    "NOT_FOUND": MemoryNotFound,
    "ALREADY_EXISTS": MemoryExists,
}


def rename_memory(scope: SessionScope, key: str, new_key: str, *, etag: Version | None) -> tuple[Item, Label | None]:
    """Give the own-level version of *key* another key.

    Returns the memory, and the level of the lower version of *key* that is visible from now on, if any. Raises
    EtagStale, WriteLevelMismatch, MemoryNotFound, MemoryExists, QuotaExceeded, or Conflict if another writer takes
    *new_key*.
    """
    release = {"release_id": scope.new_uuid(), "kind": ItemKind.MEMORY, "name": key, "new_name": new_key}
    with scope.write_lock() as lock:
        query = Query("release_item", ReleasedItem, {**release, **etag_parameters(etag)})
        released = lock.write(query).row()
        if released.outcome == "OK":
            _bring_back(scope, lock, key, new_key, released)
    if released.outcome != "OK":  # after the commit, with the audit row of the refusal
        raise _REFUSED[released.outcome]
    return _renamed(new_key, released), released.revealed


def _bring_back(scope: SessionScope, lock: WriteLock, key: str, new_key: str, released: ReleasedItem) -> None:
    """Bring the deleted item back as *new_key*. If it raises, the transaction is not committed."""
    written = [Written(new_key, released.content)]
    require_room(lock.look_up, scope.room, ItemKind.MEMORY, written, revision=released.revision, is_rename=True)
    change_id = scope.new_uuid()
    entry = index.entry(ItemKind.MEMORY, new_key, change_id, released.content, tags=released.tags)
    then = index.update(scope, ItemKind.MEMORY, [index.no_entry(key, change_id), entry], change_id)
    given = {"change_id": change_id, "item_id": released.item_id, "name": new_key}
    query = Query("undelete_item", Undeleted, given)
    if not lock.write(query, *then, *fold(scope, change_id)).row().is_back:
        raise Conflict


def _renamed(new_key: str, released: ReleasedItem) -> Item:
    return Item(
        name=new_key,
        tier=Tier.MEMORY,
        content=released.content,
        tags=released.tags,
        thread=None,
        author=None,
        event_time=None,
        label=released.label,
        item_id=released.item_id,
        revision=released.revision + 1,
        create_time=released.create_time,
        update_time=released.time,
        expire_time=released.expire_time,
        newest_label=released.label,
        newest_time=released.time,
    )
