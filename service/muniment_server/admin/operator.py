"""What operators do: host keys, history, audit, purge. Operators reach the database itself, not the service.

An operator's connection is the administrator's own, in the place of the owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import namedtuple_row

from muniment_server.audit_log.repository import Audit
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import IdSource
from muniment_server.domain.records import AuditEvent, HostIdentity, ItemKind
from muniment_server.domain.tokens import TokenKind
from muniment_server.monitor.paging import NEWEST
from muniment_server.postgres import queries, roles
from muniment_server.postgres.pool import operator_conninfo
from muniment_server.search.embeddings import EMBEDDER
from muniment_server.search.index import Text, index_query, text_of

_QUERIES = queries.load("operator", "history", "search", "meaning")
_MOST_DEADLOCKS = 5
"""Of one agent at one level, while its index is made anew."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """One host key, without the key."""

    host_key_id: UUID
    tenant: str
    ceiling: Classification
    create_time: datetime
    revoke_time: datetime | None


@dataclass(frozen=True, slots=True)
class Revision:
    """One version, as it was written."""

    classification: Classification
    item_id: UUID
    revision: int
    update_time: datetime
    expire_time: datetime | None
    content: str
    tags: tuple[str, ...]
    session_id: UUID | None
    """Who wrote it."""
    is_live: bool
    delete_time: datetime | None
    """When the item was deleted."""


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was thrown away at one level."""

    classification: Classification
    items: int
    revisions: int


class NoSuchTenant(LookupError):
    """There is no tenant of that name."""


class NoSuchAgent(LookupError):
    """The tenant has no agent of that id."""


class Operator:
    """An operator at work in one database."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def create_host_key(self, *, tenant: str, ceiling: Classification, ids: IdSource) -> tuple[UUID, str]:
        """A new key for *tenant*, which is made when there is none of that name. The key is shown this once."""
        with self._connection.transaction():
            number = self._tenant(tenant) or self._create_tenant(tenant)
            key = tokens.mint(TokenKind.HOST, tenant=number, secret=ids.new_secret())
            host_key_id = ids.new_uuid()
            self._execute(
                "create_host_key",
                tenant=number,
                host_key_id=host_key_id,
                key_hash=tokens.digest(key),
                ceiling=ceiling,
            )
        return host_key_id, key

    def host_keys(self) -> list[HostKey]:
        """All keys, revoked ones too."""
        return [
            HostKey(row.host_key_id, row.tenant, Classification(row.ceiling), row.create_time, row.revoke_time)
            for row in self._execute("list_host_keys")
        ]

    def revoke_host_key(self, host_key_id: UUID) -> bool:
        """Revoke a key, from the next call on. False: there is none, or it is revoked already."""
        return self._execute("revoke_host_key", host_key_id=host_key_id).fetchone() is not None

    def accepts_host_key(self, key: str) -> bool:
        """Whether *key* is good now."""
        token = tokens.parse(key)
        if token is None or token.kind is not TokenKind.HOST:
            return False
        return self._execute("accepts_host_key", tenant=token.tenant, key_hash=token.hash).fetchone() is not None

    def history(self, *, tenant: str, agent_id: str, kind: ItemKind, name: str) -> list[Revision]:
        """Every version of one name at every level, oldest first. Writes an audit row for each level it shows."""
        agent = self._execute("find_agent", tenant_name=tenant, agent_id=agent_id).fetchone()
        if agent is None:
            raise NoSuchAgent
        rows = self._execute("history", tenant=agent.tenant, agent=agent.agent, kind=kind, name=name)
        return [_revision(row) for row in rows]

    def audit_events(
        self, *, tenant: str, agent_id: str | None = None, session_id: UUID | None = None, limit: int
    ) -> list[AuditEvent]:
        """The newest *limit* audit events of *tenant*, at every level."""
        number = self._tenant(tenant)
        if number is None:
            raise NoSuchTenant
        with self._connection.transaction():
            self._execute("look_at", schema=roles.AUDITOR)
            everyone = HostIdentity(number, UUID(int=0), Classification.RESTRICTED)
            events, _ = Audit(self._connection, everyone).list(
                agent_id=agent_id, session_id=session_id, start_time=None, end_time=None, before=NEWEST, limit=limit
            )
        return events

    def purge(self, *, before: datetime) -> Iterator[Purged]:
        """Throw away, level by level, what was deleted, overwritten or expired before *before*."""
        for level in Classification:
            with self._connection.transaction():
                self._execute("look_at", schema=level.role)
                row = self._execute("purge", before=before, number=level).fetchone()
            yield Purged(level, row.items, row.revisions)

    def reindex(
        self, *, tenant: str | None = None, agent_id: str | None = None
    ) -> Iterator[tuple[Classification, str, int]]:
        """Make anew what search finds, of all agents, a *tenant*'s, or one, at every level. Vectors are waited for.

        Yields level, agent id and number of items.

        Each in a transaction of its own: searches go on as before until it ends, writers of its items wait. One that
        deadlocks with them, over items that came in between, begins again. Of an agent that is deleted meanwhile
        there is nothing.
        """
        for agent in self._execute("list_agents", tenant_name=tenant, agent_id=agent_id).fetchall():
            for level in Classification:
                yield level, agent.agent_id, self._reindex_one(level, agent.tenant, agent.agent)

    def _reindex_one(self, level: Classification, tenant: int, agent: int) -> int:
        for _ in range(_MOST_DEADLOCKS):
            with suppress(psycopg.errors.DeadlockDetected):
                return self._reindexed(level, tenant, agent)
        return self._reindexed(level, tenant, agent)

    def _reindexed(self, level: Classification, tenant: int, agent: int) -> int:
        try:
            with self._connection.transaction():
                self._execute("look_at", schema=level.role)
                return self._make_index(level, tenant, agent)
        except psycopg.errors.ForeignKeyViolation:  # the agent is gone
            return 0

    def _make_index(self, level: Classification, tenant: int, agent: int) -> int:
        owner = {"tenant": tenant, "agent": agent, "session_id": uuid4()}
        self._execute("open_reindexing", number=level, **owner)
        self._execute("lock_all_items", **owner)
        self._execute("clear_index", **owner)
        last = (0, "")
        indexed: list[tuple[ItemKind, list[str], list[UUID]]] = []
        while items := self._execute("lock_items", **owner, after_kind=last[0], after_name=last[1]).fetchall():
            for kind, of_kind in groupby(items, key=lambda item: ItemKind(item.kind)):
                own = list(of_kind)
                index = index_query(kind, [_text(kind, item) for item in own])
                self._execute(index.name, **owner, change_id=uuid4(), **index.parameters)
                indexed.append((kind, [item.name for item in own], [item.change_id for item in own]))
            last = (items[-1].kind, items[-1].name)
        for kind, names, changes in indexed:  # when all are there: each is meant together with the turn before it
            self._execute("queue_pieces", **owner, kind=kind, names=names, changes=changes)
        self._execute("close_reindexing", **owner)
        return sum(len(names) for _, names, _ in indexed)

    def broken_ledgers(self) -> dict[Classification, int]:
        """How many items of each level have a ledger with a gap: versions that were lost."""
        return {level: self._broken(level, "broken_ledgers") for level in Classification}

    def broken_index(self) -> dict[Classification, int]:
        """How much of each level search does not know, knows wrongly, or counts wrongly."""
        return {level: self._broken(level, "broken_index") for level in Classification}

    def waiting_pieces(self) -> tuple[int, int]:
        """How many pieces wait for their vectors, and how many have one of another embedder than this server's."""
        rows = []
        for level in Classification:
            with self._connection.transaction():
                self._execute("look_at", schema=level.role)
                rows.append(self._execute("count_waiting", embedder=EMBEDDER).fetchone())
        return sum(row.waiting for row in rows), sum(row.outdated for row in rows)

    def _broken(self, level: Classification, query: str) -> int:
        with self._connection.transaction():
            self._execute("look_at", schema=level.role)
            return int(self._execute(query).fetchone().broken)

    def _tenant(self, name: str) -> int | None:
        row = self._execute("find_tenant", name=name).fetchone()
        return int(row.tenant) if row else None

    def _create_tenant(self, name: str) -> int:
        """Under a lock, so that there are no two of one name: a unique index would not begin with tenant."""
        self._execute("lock_tenants")
        return self._tenant(name) or int(self._execute("create_tenant", name=name).fetchone().tenant)

    def _execute(self, query: str, /, **parameters: object) -> Any:
        return self._connection.execute(_QUERIES[query], parameters)


@contextmanager
def operating(admin: str) -> Iterator[Operator]:
    """An operator in the database of the conninfo *admin*."""
    with psycopg.connect(operator_conninfo(admin), autocommit=True, row_factory=namedtuple_row) as connection:
        yield Operator(connection)


def _text(kind: ItemKind, item: Any) -> Text:
    text = text_of(kind, item.name, item.content, author=item.author, tags=item.tags)
    return {**text, "change_id": str(item.change_id)}


def _revision(row: Any) -> Revision:
    return Revision(
        classification=Classification(row.level),
        item_id=row.item_id,
        revision=row.revision,
        update_time=row.update_time,
        expire_time=row.expire_time,
        content=row.content,
        tags=tuple(row.tags),
        session_id=row.session_id,
        is_live=row.is_live,
        delete_time=row.delete_time,
    )
