"""How a deleted item comes back, at the level of its session."""

from __future__ import annotations

from muniment_server.domain.errors import Conflict, ItemExists
from muniment_server.domain.items import ItemKind
from muniment_server.domain.notes import require_budget
from muniment_server.items.item_store import NOT_FOUND, fold
from muniment_server.items.notes import NOTE_VERSIONS, note_set
from muniment_server.items.quotas import Written, require_room
from muniment_server.items.rows import DeletedItem, Undeleted
from muniment_server.monitor.session_scope import Query, SessionScope, WriteLock
from muniment_server.search import index


def undelete(scope: SessionScope, kind: ItemKind, name: str) -> None:
    """Bring back the last item of *name* at the session's own level: its last revision becomes a new one.

    Raises ItemExists if an item of the name is live, the not-found error of the kind unless the last one was deleted
    and has not expired, TierDisabled, BudgetExceeded, QuotaExceeded, or Conflict if others wrote it meanwhile.
    """
    with scope.write_lock() as lock:  # as every undelete does: none brings the item back after the look-up
        (found,) = lock.look_up(Query("get_deleted_item", DeletedItem, {"kind": kind, "name": name}))
        if found.is_live:
            raise ItemExists
        if found.item_id is None:
            raise NOT_FOUND[kind]
        _require_room(lock, scope, kind, name, found)
        if not _write(lock, scope, kind, name, found):
            raise Conflict


def _require_room(lock: WriteLock, scope: SessionScope, kind: ItemKind, name: str, found: DeletedItem) -> None:
    if kind is ItemKind.NOTE:
        notes = note_set(scope.taint, lock.look_up(NOTE_VERSIONS))
        require_budget(notes, found.tier, name, found.content)
    if kind is ItemKind.PASSAGE:  # it comes back without a new revision, and its bytes are still counted
        require_room(lock.look_up, scope.room, kind, [Written(name, "")])
    else:
        require_room(lock.look_up, scope.room, kind, [Written(name, found.content)], revision=found.revision)


def _write(lock: WriteLock, scope: SessionScope, kind: ItemKind, name: str, found: DeletedItem) -> bool:
    """Whether the item is back. If not, the transaction must not be committed."""
    change_id = scope.new_uuid()
    then = []
    if kind is not ItemKind.BLOCK:
        entry = index.entry(kind, name, change_id, found.content, author=found.author, tags=found.tags)
        then = [*index.update(scope, kind, [entry], change_id)]
    query = Query("undelete_item", Undeleted, {"change_id": change_id, "item_id": found.item_id, "name": name})
    return lock.write(query, *then, *fold(scope, change_id)).row().is_back
