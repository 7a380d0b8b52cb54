"""EraseItems: the deletion of items of a live agent with all their revisions, as the eraser.

The call begins an erasure, erases level by level in batches, and then ends the erasure. Each batch is a transaction
with its own audit rows, at one level: so even an agent's largest tag can be erased, and no writer waits for the rows of
a level above its own. Before each, calls of others have their turn, and the host key is checked again. A batch takes
no item that a writer has locked; such items are erased one by one, so that there is never a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias
from uuid import UUID

from muniment_server.agents import repository
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import Unauthenticated
from muniment_server.domain.ids import AgentNumber, HostKeyId, ItemId
from muniment_server.domain.items import ItemKind, Version
from muniment_server.monitor.host_scope import HostScope

_PAGE_ITEMS = 500
_BATCH_ITEMS = 200
_BATCH_BYTES = 1024 * 1024
"""The content of one batch, give or take an item. Its writers wait for all of it, and raises of the taint for them."""
_BATCH_REVISIONS = 500
_PAGE_AGENTS = 1000
_BEFORE_ALL = UUID(int=0)
EraserScope: TypeAlias = Callable[[], AbstractContextManager[HostScope]]


@dataclass(frozen=True, slots=True)
class Target:
    """What to erase: the items of a name, those of a tag, or one version. Exactly one is not None."""

    name: str | None = None
    tag: str | None = None
    version: Version | None = None


@dataclass(frozen=True, slots=True)
class Erasure:
    """What the eraser may erase for one call."""

    agent: AgentNumber
    erasure_id: UUID
    ceiling: Classification


@dataclass(frozen=True, slots=True)
class _Tagged:
    agent: AgentNumber


@dataclass(frozen=True, slots=True)
class _Ended:
    erasure_id: UUID


@dataclass(frozen=True, slots=True)
class _Key:
    host_key_id: HostKeyId


@dataclass(frozen=True, slots=True)
class _Item:
    item_id: ItemId


@dataclass(frozen=True, slots=True)
class _Found:
    item_id: ItemId
    bytes: int


@dataclass(frozen=True, slots=True)
class _Erased:
    revisions: int


@dataclass(frozen=True, slots=True)
class _Level:
    """The statements of one call at one level."""

    eraser_scope: EraserScope
    erasure: Erasure
    kind: ItemKind
    label: Label
    revision: int | None
    """Erases this revision only."""

    def batches(self, target: Target) -> Iterator[list[ItemId]]:
        """The items of a name or a tag, as many at once as are erased together."""
        after: UUID = _BEFORE_ALL
        while page := self._find(target, after):
            yield from _batches(page)
            after = page[-1].item_id

    def erase(self, items: Sequence[ItemId]) -> None:
        """Erase *items*: together those that are free, then one by one those that writers have locked."""
        with self._transaction() as scope:
            locked = self._ids(scope, "lock_free", items)
            present = self._ids(scope, "find_present", items)
            busy = set(present) - set(locked)
            erased = self._erase_unlocked(scope, [item for item in items if item not in busy])
        for item in busy:
            with self._transaction() as scope:
                while not self._ids(scope, "lock_one", [item]) and self._ids(scope, "find_present", [item]):
                    pass  # a rename has moved it to another row
                erased = max(erased, self._erase_unlocked(scope, [item]))
        while erased == _BATCH_REVISIONS:  # there may be more, for which no writer waits
            with self._transaction() as scope:
                erased = self._erase_revisions(scope, items)

    def clear_centers(self) -> None:
        """Clear the centers again, after everything is erased.

        A center computed during the erasure may include an erased text. Runs even if nothing was found: an earlier,
        interrupted call may have erased it.
        """
        with self._transaction() as scope:
            scope.execute("clear_centers", agent=self.erasure.agent, kind=self.kind)

    def _erase_unlocked(self, scope: HostScope, items: Sequence[ItemId]) -> int:
        """Erase items that are locked or have no row left. Returns how many revisions were erased with them.

        Each step is a statement of its own, so that it sees what a writer committed while the lock was awaited.
        """
        change_ids = [scope.new_uuid() for _ in items]
        scope.execute("log_erased", change_ids=change_ids, level=self.label.level, **self._given(items))
        for step in ("clear_centers", "unindex_erased", "erase_items_of_call"):
            scope.execute(step, change_id=scope.new_uuid(), **self._given(items))
        return self._erase_revisions(scope, items)

    def _erase_revisions(self, scope: HostScope, items: Sequence[ItemId]) -> int:
        given = {"change_id": scope.new_uuid(), "most": _BATCH_REVISIONS, **self._given(items)}
        erased = scope.first("erase_revisions_of_call", _Erased, **given)
        return erased.revisions if erased is not None else 0

    def _given(self, items: Sequence[ItemId]) -> dict[str, object]:
        agent = self.erasure.agent
        return {"agent": agent, "kind": self.kind, "item_ids": list(items), "revision": self.revision}

    def _find(self, target: Target, after: UUID) -> list[_Found]:
        given = {"agent": self.erasure.agent, "kind": self.kind, "name": target.name, "tag": target.tag}
        with self._transaction() as scope:
            rows = scope.rows("find_erased", _Found, after_id=after, limit=_PAGE_ITEMS, **given)
        return [row for row in rows if row is not None]

    def _ids(self, scope: HostScope, query: str, items: Sequence[ItemId]) -> list[ItemId]:
        rows = scope.rows(query, _Item, agent=self.erasure.agent, item_ids=items)
        return [row.item_id for row in rows if row is not None]

    @contextmanager
    def _transaction(self) -> Iterator[HostScope]:
        """A transaction at the level. Raises Unauthenticated if the host key is no longer valid."""
        with self.eraser_scope() as scope, scope.transaction():
            scope.execute("use_schema", schema=self.label.role)
            if scope.first("find_valid_key", _Key) is None:
                raise Unauthenticated
            yield scope


def begin(scope: HostScope, agent_id: str | None, kind: ItemKind) -> list[Erasure]:
    """Let the eraser see items of one kind, of one agent or of all. Writes the audit row of the call.

    Raises AgentNotFound, AgentAboveCeiling or AgentHeld.
    """
    with scope.transaction():
        scope.execute("lock_erased", agent_id=agent_id)
        rows = scope.rows("begin_erasure", Erasure, change_id=scope.new_uuid(), agent_id=agent_id, kind=kind)
    erasures = [row for row in rows if row is not None]
    if not erasures and agent_id is not None:
        scope.raise_unmanageable(agent_id)
    return erasures


def places(
    eraser_scope: EraserScope, erasures: Sequence[Erasure], kind: ItemKind, tag: str | None
) -> list[tuple[Erasure, list[Label]]]:
    """Where to erase: each agent with its labels up to the ceiling, the lowest first.

    With *tag*, only the labels at which an agent has items with it, or had in any revision. So what is at one label
    changes no list of embeddings at another.
    """
    everywhere = [
        (erasure, label) for erasure in erasures for label in Label if label.level.can_flow_to(erasure.ceiling)
    ]
    if tag is not None:
        labels = {label for _, label in everywhere}
        tagged = {label: _agents(eraser_scope, label, kind, tag) for label in labels}
        everywhere = [(erasure, label) for erasure, label in everywhere if erasure.agent in tagged[label]]
    return [(erasure, [label for _, label in same]) for erasure, same in groupby(everywhere, key=itemgetter(0))]


def erase(eraser_scope: EraserScope, erasure: Erasure, labels: Sequence[Label], kind: ItemKind, target: Target) -> None:
    """Erase, as the eraser, what the erasure covers at *labels*.

    Raises Unauthenticated once the host key is no longer valid.
    """
    for label in labels:
        version = target.version
        at_level = _Level(eraser_scope, erasure, kind, label, version.revision if version else None)
        for items in [[version.item_id]] if version else at_level.batches(target):
            at_level.erase(items)
        at_level.clear_centers()


def _agents(eraser_scope: EraserScope, label: Label, kind: ItemKind, tag: str) -> set[AgentNumber]:
    with eraser_scope() as scope, scope.transaction():
        scope.execute("use_schema", schema=label.role)
        rows = scope.rows("find_agents", _Tagged, kind=kind, tag=tag)
    return {row.agent for row in rows if row is not None}


def end(scope: HostScope, agent_id: str | None, erasures: Sequence[Erasure]) -> None:
    """End the erasures. Raises AgentNotFound or AgentHeld if the one agent was deleted meanwhile, or held."""
    if erasures:
        agents = [erasure.agent for erasure in erasures]
        ended = scope.rows("end_erasure", _Ended, agents=agents, erasure_id=erasures[0].erasure_id)
        if agent_id is not None and not ended:
            scope.raise_unmanageable(agent_id)


def left_out(scope: HostScope) -> list[str]:
    """The ids of the agents that the key knows and of which it can erase nothing."""
    found: list[str] = []
    after, more = "", True
    while more:
        page, more = repository.list_agents(scope, after=after, limit=_PAGE_AGENTS)
        found += [agent.agent_id for agent in page if agent.held or not agent.ceiling.can_flow_to(scope.ceiling)]
        after = page[-1].agent_id if page else ""
    return found


def _batches(page: Sequence[_Found]) -> Iterator[list[ItemId]]:
    batch: list[ItemId] = []
    size = 0
    for found in page:
        if len(batch) == _BATCH_ITEMS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(found.item_id)
        size += found.bytes
    yield batch
