"""How a released item is written, with the label of its session."""

from __future__ import annotations

from uuid import UUID

from muniment_server.domain.errors import Conflict, InvalidArgument, NoteExists, PassageExists, ReleaseSourceChanged
from muniment_server.domain.items import Item, ItemKind, Version
from muniment_server.domain.notes import require_budget
from muniment_server.items import item_store
from muniment_server.items.item_store import NewPassage, NewVersion
from muniment_server.items.notes import NOTE_VERSIONS, note_set
from muniment_server.monitor.session_scope import SessionScope, WriteLock


def write(scope: SessionScope, kind: ItemKind, source: Item, change_id: UUID) -> Version:
    """Write *source* under its name with the label of the session; return what is stored.

    Raises ReleaseSourceChanged if it has expired; QuotaExceeded, TierDisabled, BudgetExceeded, NoteExists or
    PassageExists as other writes do; or Conflict if others wrote it meanwhile.
    """
    if kind is ItemKind.PASSAGE:
        return _store(scope, source, change_id)
    new = NewVersion(
        kind, source.name, source.content, source.tags, source.expire_time, tier=source.tier, change_id=change_id
    )
    try:
        if kind is ItemKind.MEMORY:
            return item_store.save(scope, new).version
        with scope.write_lock() as lock:
            if kind is ItemKind.NOTE:
                _require_budget(scope, lock, source)
            saved = item_store.save_locked(scope, lock, new)
        return item_store.saved_item(new, saved.row()).version
    except InvalidArgument:
        raise ReleaseSourceChanged from None


def _require_budget(scope: SessionScope, lock: WriteLock, source: Item) -> None:
    notes = note_set(scope.taint, lock.look_up(NOTE_VERSIONS))
    if any(note.tier is not source.tier for note in notes.versions.get(source.name, {}).values()):
        raise NoteExists
    require_budget(notes, source.tier, source.name, source.content)


def _store(scope: SessionScope, source: Item, change_id: UUID) -> Version:
    passage = NewPassage(
        source.name,
        source.content,
        tuple(source.tags),
        source.thread,
        source.author,
        source.event_time,
        source.expire_time,
        change_id,
    )
    (row,) = item_store.store_passages(scope, [item_store.indexed(passage)])
    match row.outcome:
        case "OK" | "EXISTS":
            return item_store.get(scope, ItemKind.PASSAGE, source.name).version
        case "ALREADY_EXISTS":
            raise PassageExists
        case "PAST":
            raise ReleaseSourceChanged
    raise Conflict
