"""How a session deletes many items at once, at its own level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muniment_server.domain.ids import AgentNumber
from muniment_server.domain.items import ItemKind
from muniment_server.items.item_store import fold
from muniment_server.items.rows import DeletedItems
from muniment_server.monitor.session_scope import Query, SessionScope, WriteLock
from muniment_server.search import index

_MAX_ITEMS = 1_000
_MAX_BYTES = 4 * 1024 * 1024
"""The limit on the content that one call deletes, give or take an item. A raise of the taint waits for the call."""


@dataclass(frozen=True, slots=True)
class _Unindexed:
    agent: AgentNumber


def delete_all(
    scope: SessionScope, kind: ItemKind, *, tag: str | None = None, thread: str | None = None
) -> tuple[int, bool]:
    """Delete own-level items with a *tag*, or of a *thread*, in the order of their names: at most 1,000, about 4 MiB.

    Returns how many it deleted, and whether there are more. Takes the write lock, so that two of these calls
    never wait for each other's rows of the index.
    """
    change_id = scope.new_uuid()
    parameters = {
        "kind": kind,
        "tag": tag,
        "thread": thread,
        "change_id": change_id,
        "change_ids": [scope.new_uuid() for _ in range(_MAX_ITEMS)],
        "max_bytes": _MAX_BYTES,
    }
    with scope.write_lock() as lock:
        deleted = lock.write(Query("delete_items", DeletedItems, parameters), *fold(scope, change_id)).row()
        if deleted.names:
            _unindex(scope, lock, kind, deleted.names)
    return len(deleted.names), deleted.more


def _unindex(scope: SessionScope, lock: WriteLock, kind: ItemKind, names: Sequence[str]) -> None:
    change_id = scope.new_uuid()
    first, *then = index.update(scope, kind, [index.no_entry(name, change_id) for name in names], change_id)
    lock.write(Query(first.name, _Unindexed, first.parameters), *then)
