"""EraseItems: the deletion of items of a live agent with all their revisions, as the eraser.

The call orders what it erases, erases level by level in batches, and then ends its order. Each batch is a transaction
with its own audit rows, at one level: so even an agent's largest tag can be erased, and no writer waits for the rows of
a level above its own. A batch takes no item that a writer has locked; such items are erased one by one, so that there
is never a deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import AgentNotFound
from muniment_server.domain.ids import AgentNumber, ItemId
from muniment_server.domain.items import ItemKind, Version
from muniment_server.monitor.host_scope import HostScope

_BATCH_ITEMS = 500
_BEFORE_ALL = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Target:
    """What to erase: the items of a name, those of a tag, or one version. Exactly one is not None."""

    name: str | None = None
    tag: str | None = None
    version: Version | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What the eraser may erase for one call."""

    agent: AgentNumber
    erasure_id: UUID
    ceiling: Classification


@dataclass(frozen=True, slots=True)
class _Item:
    item_id: ItemId


@dataclass(frozen=True, slots=True)
class _Erasure:
    erasure_id: UUID


@dataclass(frozen=True, slots=True)
class _Batches:
    """The statements of one call at one level."""

    scope: HostScope
    order: Order
    kind: ItemKind
    level: Classification
    revision: int | None
    """Erases this revision only."""

    def found(self, target: Target) -> Iterator[list[ItemId]]:
        """The items of a name or a tag."""
        after: UUID = _BEFORE_ALL
        while page := self._ids("find_erased", name=target.name, tag=target.tag, after_id=after, limit=_BATCH_ITEMS):
            yield page
            after = page[-1]

    def erase(self, items: Sequence[ItemId]) -> None:
        """Erase *items*: together those that are free, then one by one those that writers have locked."""
        with self.scope.transaction():
            self._use_level()
            locked = self._rows("lock_free", item_ids=items)
            present = self._rows("find_present", item_ids=items)
            busy = set(present) - set(locked)
            self._erase_locked([item for item in items if item not in busy])
        for item in busy:
            with self.scope.transaction():
                self._use_level()
                self.scope.execute("lock_one", agent=self.order.agent, item_ids=[item])
                self._erase_locked([item])

    def _erase_locked(self, items: Sequence[ItemId]) -> None:
        """Erase items. Each step sees what the writers stored that the lock waited for."""
        given = {"agent": self.order.agent, "kind": self.kind, "item_ids": list(items), "revision": self.revision}
        change_ids = [self.scope.new_uuid() for _ in items]
        self.scope.execute("log_erased", change_ids=change_ids, level=self.level, **given)
        for step in ("unindex_erased", "erase_items_of_call", "erase_revisions_of_call"):
            self.scope.execute(step, change_id=self.scope.new_uuid(), **given)

    def _ids(self, query: str, **parameters: object) -> list[ItemId]:
        with self.scope.transaction():
            self._use_level()
            return self._rows(query, kind=self.kind, **parameters)

    def _rows(self, query: str, **parameters: object) -> list[ItemId]:
        rows = self.scope.rows(query, _Item, agent=self.order.agent, **parameters)
        return [row.item_id for row in rows if row is not None]

    def _use_level(self) -> None:
        self.scope.execute("use_level", schema=self.level.role)


def order(scope: HostScope, agent_id: str, kind: ItemKind) -> Order:
    """Let the eraser see items of one kind. Writes the audit row of the call. Raises AgentNotFound."""
    ordered = scope.change("order_erasure", Order, agent_id=agent_id, kind=kind)
    if ordered is None:
        raise AgentNotFound
    return ordered


def erase(scope: HostScope, order: Order, kind: ItemKind, target: Target) -> None:
    """Erase, as the eraser, what the order covers: level by level, up to its ceiling, the lowest first."""
    for level in (level for level in Classification if level.can_flow_to(order.ceiling)):
        version = target.version
        batches = _Batches(scope, order, kind, level, version.revision if version else None)
        for items in [[version.item_id]] if version else batches.found(target):
            batches.erase(items)


def end(scope: HostScope, order: Order) -> None:
    """End the order. Raises AgentNotFound if the agent was deleted meanwhile."""
    parameters = {"agent": order.agent, "erasure_id": order.erasure_id}
    if scope.first("end_erasure", _Erasure, **parameters) is None:
        raise AgentNotFound
