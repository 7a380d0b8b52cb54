"""Rebuilds the search index and the counts of what is stored from the items, for an operator. See `reindex.sql`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID, uuid4

import psycopg

from muniment_server.domain.classification import Label
from muniment_server.domain.ids import AgentNumber, TenantNumber
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.queries import SESSION_QUERIES
from muniment_server.postgres import queries
from muniment_server.postgres.rows import row_of
from muniment_server.postgres.transaction import lift_idle_timeout
from muniment_server.search import index

_QUERIES = {**SESSION_QUERIES, **queries.load(__package__, "reindex.sql")}
_BATCH_BYTES = 1024 * 1024
"""The content that one statement indexes, give or take an item. Its grams are one parameter, which is far larger."""
_MAX_DEADLOCKS = 5
"""How often the rebuild of one agent's level is run again."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """How many items of one agent were indexed at one level."""

    classification: Label
    agent_id: str
    items: int


@dataclass(frozen=True, slots=True)
class _Agent:
    tenant: TenantNumber
    agent: AgentNumber
    agent_id: str


@dataclass(frozen=True, slots=True)
class _Item:
    kind: ItemKind
    name: str
    change_id: UUID
    content: str
    tags: list[str]
    author: str | None


def reindex(
    connection: psycopg.Connection[Any], *, tenant: str | None = None, agent_id: str | None = None
) -> Iterator[Reindexed]:
    """Rebuild the index of all agents, the agents of *tenant*, or one agent, at every level, and queue embeddings.

    Each level of an agent is one transaction. Until it commits, searches use the old index, and writers of the agent's
    items wait. A transaction that deadlocks with them is run again. An agent that is deleted meanwhile is skipped.

    *connection* acts as the owner, in autocommit mode.
    """
    cursor: Any = connection.cursor(row_factory=row_of(_Agent))
    agents: list[_Agent] = cursor.execute(
        _QUERIES["list_agents_to_reindex"], {"tenant_name": tenant, "agent_id": agent_id}
    ).fetchall()
    for agent in agents:
        for level in Label:
            yield Reindexed(level, agent.agent_id, _reindex_retrying(connection, level, agent))


def _reindex_retrying(connection: psycopg.Connection[Any], level: Label, agent: _Agent) -> int:
    for _ in range(_MAX_DEADLOCKS):
        with suppress(psycopg.errors.DeadlockDetected):
            return _reindex_level(connection, level, agent)
    return _reindex_level(connection, level, agent)


def _reindex_level(connection: psycopg.Connection[Any], level: Label, agent: _Agent) -> int:
    with connection.transaction():
        lift_idle_timeout(connection)  # the grams of long texts take seconds
        connection.execute(_QUERIES["use_schema"], {"schema": level.role})
        return _Rebuild(connection, level, agent).run()


class _Rebuild:
    """Rebuilds the index of one agent at one level, in one transaction."""

    def __init__(self, connection: psycopg.Connection[Any], level: Label, agent: _Agent) -> None:
        self._connection = connection
        self._level = level
        self._identity = {"tenant": agent.tenant, "agent": agent.agent, "session_id": uuid4()}

    def run(self) -> int:
        if not self._execute(
            "open_reindexing", {"number": self._level.level, "trusted": self._level.is_trusted}
        ):  # the agent has been deleted
            return 0
        self._execute("lock_all_items", {})
        models = [number for (number,) in self._connection.execute(_QUERIES["remote_models"], self._identity)]
        self._execute("clear_index", {})
        self._execute("count_storage", {})
        indexed = list(self._index_items())
        for kind, entries in indexed:  # after indexing: a passage is embedded together with the one before it
            statement = index.queue_statement(kind, entries)
            self._execute(statement.name, statement.parameters)
            self._execute("queue_rebuilt", {**statement.parameters, "models": models})
        self._execute("close_reindexing", {})
        return sum(len(entries) for _, entries in indexed)

    def _index_items(self) -> Iterator[tuple[ItemKind, list[index.IndexEntry]]]:
        last = (0, "")
        while items := self._items_after(*last):
            for kind, batch in _batches(items):
                entries = [
                    index.entry(kind, item.name, item.change_id, item.content, author=item.author, tags=item.tags)
                    for item in batch
                ]
                statement = index.index_statement(kind, entries)
                self._execute(statement.name, {**statement.parameters, "change_id": uuid4()})
                yield kind, [{"name": entry["name"], "change_id": entry["change_id"]} for entry in entries]
            last = (items[-1].kind, items[-1].name)

    def _items_after(self, kind: int, name: str) -> list[_Item]:
        cursor: Any = self._connection.cursor(row_factory=row_of(_Item))
        parameters = {**self._identity, "after_kind": kind, "after_name": name}
        items: list[_Item] = cursor.execute(_QUERIES["lock_items"], parameters).fetchall()
        return items

    def _execute(self, name: str, parameters: Any) -> int:
        return self._connection.execute(_QUERIES[name], {**parameters, **self._identity}).rowcount


def _batches(items: Sequence[_Item]) -> Iterator[tuple[ItemKind, list[_Item]]]:
    """The items of one statement each: of one kind, and up to `_BATCH_BYTES`."""
    for kind, of_kind in groupby(items, key=lambda item: item.kind):
        batch: list[_Item] = []
        size = 0
        for item in of_kind:
            if size >= _BATCH_BYTES:
                yield kind, batch
                batch, size = [], 0
            batch.append(item)
            size += len(item.content.encode())
        yield kind, batch
