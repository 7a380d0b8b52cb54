"""What operators do in the database: host keys, tenants, history, audit log, journal, purge, reindexing and checks.

The connection is an administrator's login that acts as the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg import conninfo as libpq

from muniment_server.admin import sealing
from muniment_server.admin.journal import Entry, Journal, journal_of, replay
from muniment_server.admin.sealing import Checkpoint, RemovedEvents, Verified
from muniment_server.audit_log import repository as audit_log
from muniment_server.audit_log.repository import AuditEvent
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import AgentNumber, HostKeyId, IdSource, ItemId, SessionId, TenantNumber
from muniment_server.domain.items import ItemKind
from muniment_server.domain.limits import NEARLY_FULL
from muniment_server.domain.principals import HostIdentity
from muniment_server.domain.tokens import TokenKind
from muniment_server.items.paging import NEWEST
from muniment_server.monitor.audit_scope import AuditScope
from muniment_server.postgres import queries, roles
from muniment_server.postgres.epochs import Epoch
from muniment_server.postgres.pool import administrator, epoch_of, operator_conninfo
from muniment_server.postgres.rows import row_of
from muniment_server.postgres.transaction import lift_idle_timeout, login_of
from muniment_server.runtime import clocks, restoring
from muniment_server.runtime.claims import RANGE, tenants_of
from muniment_server.search.embeddings import EMBEDDER
from muniment_server.search.reindex import Reindexed, reindex

_QUERIES = {**queries.load(__package__, "operator.sql"), **queries.load(__package__, "history.sql")}
_R = TypeVar("_R")
_BATCH_SESSIONS = 1000
"""How many sessions one transaction purges."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host key, without the secret."""

    host_key_id: HostKeyId
    tenant: str
    ceiling: Classification
    only_service: str | None
    create_time: datetime
    expire_time: datetime | None
    freeze_time: datetime | None
    revoke_time: datetime | None


@dataclass(frozen=True, slots=True)
class OpenSession:
    """An open session."""

    tenant: TenantNumber
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """What the agents of a tenant may be given together. None is no limit."""

    tenant: str
    max_agents: int | None
    calls_per_second: int | None
    max_items: int | None
    max_bytes: int | None


@dataclass(frozen=True, slots=True)
class MovingTenant:
    """A tenant whose move has not ended.

    Seen at the server that it leaves (`moving_to` is set) or enters (`moving_from` is set).
    """

    tenant: str
    moving_to: str | None
    moving_from: str | None


@dataclass(frozen=True, slots=True)
class NearlyFull:
    """An agent that has stored most of what it may at one level."""

    tenant: str
    agent_id: str
    items: int
    max_items: int
    bytes: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of an item, as it was written."""

    classification: Classification
    item_id: ItemId
    revision: int
    update_time: datetime
    expire_time: datetime | None
    content: str
    tags: list[str]
    session_id: SessionId | None
    """The session that wrote it."""
    is_live: bool
    delete_time: datetime | None
    """When the item was deleted."""


@dataclass(frozen=True, slots=True)
class Purgeable:
    """What to purge. None restricts nothing."""

    tenant: TenantNumber | None = None
    agent: AgentNumber | None = None
    kind: ItemKind | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was purged at one level."""

    classification: Classification
    items: int
    revisions: int


@dataclass(frozen=True, slots=True)
class PurgedSession:
    """A session that was purged. *taint* is that of its conversation, which stays."""

    session_id: SessionId
    taint: Classification


@dataclass(frozen=True, slots=True)
class _Name:
    name: str


@dataclass(frozen=True, slots=True)
class _Tenant:
    tenant: TenantNumber


@dataclass(frozen=True, slots=True)
class _Agent:
    tenant: TenantNumber
    agent: AgentNumber


@dataclass(frozen=True, slots=True)
class _HostKeyId:
    host_key_id: HostKeyId


@dataclass(frozen=True, slots=True)
class _IsMoving:
    is_moving: bool


@dataclass(frozen=True, slots=True)
class _Counts:
    items: int
    revisions: int
    tenants: list[TenantNumber] | None
    agents: list[AgentNumber] | None
    """The agents whose items were purged, and the tenant of each, in the same order. None if there were none."""


@dataclass(frozen=True, slots=True)
class _Broken:
    broken: int


@dataclass(frozen=True, slots=True)
class _Count:
    rows: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    waiting: int
    outdated: int


@dataclass(frozen=True, slots=True)
class _RemoteChunks:
    waiting: int
    made: int


class NoSuchTenant(LookupError):
    """There is no tenant with that name."""


class TenantMoves(RuntimeError):
    """The tenant with that name is moving to another database server, or has not arrived from one."""


class NoSuchAgent(LookupError):
    """The tenant has no agent with that id."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many tenants and agents a database has."""

    tenants: int
    agents: int


class Operator:
    """An operator, connected to one database."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection, for a transaction at several servers."""
        return self._connection

    @property
    def conninfo(self) -> str:
        """How another process connects as this operator does."""
        info = self._connection.info
        return libpq.make_conninfo(info.dsn, **({"password": info.password} if info.password else {}))

    def create_host_key(
        self,
        *,
        tenant: str,
        ceiling: Classification,
        lifetime: timedelta | None = None,
        only_service: str | None = None,
        taken: Collection[TenantNumber] = (),
        ids: IdSource,
    ) -> tuple[UUID, str]:
        """Create a key for *tenant*, which is created if it does not exist; return the key's id and the key.

        It expires after *lifetime*, and may call the methods of *only_service* only, unless those are None. A new
        tenant gets none of the numbers *taken*.
        """
        with self._connection.transaction():
            number = self._tenant(tenant) or self._create_tenant(tenant, taken)
            found = self._first("is_moving", _IsMoving, tenant=number)
            if found is None or found.is_moving:  # None: the tenant moved away while this waited for the lock
                raise TenantMoves
            key = tokens.mint(TokenKind.HOST, tenant=number, secret=ids.new_secret())
            host_key_id = ids.new_uuid()
            self._execute(
                "create_host_key",
                tenant=number,
                host_key_id=host_key_id,
                key_hash=tokens.digest(key),
                ceiling=ceiling,
                lifetime=lifetime,
                only_service=only_service,
            )
        return host_key_id, key

    def has_tenant(self, name: str) -> bool:
        """Whether there is a tenant of that name."""
        return self._tenant(name) is not None

    def tenant_names(self) -> list[str]:
        """The names of all tenants."""
        return [found.name for found in self._rows("list_tenant_names", _Name)]

    def tenants(self) -> frozenset[TenantNumber]:
        """The numbers of all tenants."""
        return tenants_of(self._connection)

    def host_keys(self) -> list[HostKey]:
        """All keys, including revoked ones."""
        return self._rows("list_host_keys", HostKey)

    def revoke_host_key(self, host_key_id: UUID) -> bool:
        """Revoke a key. False if there is no such key, or it is already revoked."""
        return self._first("revoke_host_key", _Tenant, host_key_id=host_key_id) is not None

    def accepts_host_key(self, key: str) -> bool:
        """Whether *key* is valid now."""
        token = tokens.parse(key)
        if token is None or token.kind is not TokenKind.HOST:
            return False
        return self._first("accepts_host_key", _HostKeyId, tenant=token.tenant, key_hash=token.hash) is not None

    def history(self, *, tenant: str, agent_id: str, kind: ItemKind, name: str) -> list[Revision]:
        """Every version of one name at every level, oldest first. Writes an audit row for each level it shows."""
        agent = self._agent(tenant, agent_id)
        return self._rows("history", Revision, tenant=agent.tenant, agent=agent.agent, kind=kind, name=name)

    def audit_events(
        self, *, tenant: str, agent_id: str | None = None, session_id: UUID | None = None, limit: int
    ) -> list[AuditEvent]:
        """The newest *limit* audit events of *tenant*, at every level."""
        number = self._known_tenant(tenant)
        every_level = HostIdentity(number, HostKeyId(UUID(int=0)), Classification.RESTRICTED)
        with self._connection.transaction():
            self._execute("use_schema", schema=roles.AUDITOR)
            events, _ = audit_log.list_events(
                AuditScope(self._connection, every_level),
                agent_id=agent_id,
                session_id=session_id,
                start_time=None,
                end_time=None,
                before=NEWEST,
                limit=limit,
            )
        return events

    def audit_checkpoints(self, tenant: str) -> list[Checkpoint]:
        """The last seal of each level at which something is sealed."""
        number = self._known_tenant(tenant)
        return [one for level in Classification if (one := sealing.checkpoint(self._connection, number, level))]

    def verify_audit(self, tenant: str, checkpoints: Sequence[Checkpoint]) -> Iterator[Verified]:
        """Verify the audit log of *tenant* against its seals and *checkpoints*, level by level."""
        number = self._known_tenant(tenant)
        for level in Classification:
            of_level = [checkpoint for checkpoint in checkpoints if checkpoint.classification is level]
            with self._connection.transaction():
                self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                self._execute("use_schema", schema=level.role)
                yield sealing.verify(self._connection, number, level, of_level)

    def remove_audit_events(self, tenant: str, *, before: datetime) -> Iterator[RemovedEvents]:
        """Remove, level by level, the events of sessions that were sealed before *before*. The seals stay."""
        number = self._known_tenant(tenant)
        for level in Classification:
            yield sealing.remove_events(self._connection, number, level, before=before)

    def clock_warnings(self) -> list[str]:
        """Warns if the clocks of this machine and of the database differ."""
        return clocks.warnings(self._connection)

    def purgeable(
        self, *, tenant: str | None, agent_id: str | None, kind: ItemKind | None, name: str | None
    ) -> Purgeable:
        """What to purge: everything, or what belongs to those that are named. Raises NoSuchTenant or NoSuchAgent."""
        _require_tenant(tenant, agent_id)
        if tenant is None:
            return Purgeable(kind=kind, name=name)
        number = self._known_tenant(tenant)
        agent = None if agent_id is None else self._agent(tenant, agent_id).agent
        return Purgeable(number, agent, kind, name)

    def purge(self, what: Purgeable, *, before: datetime) -> Iterator[Purged]:
        """Remove, level by level, versions that were deleted, overwritten or expired before *before*."""
        for level in Classification:
            with self._connection.transaction():
                self._execute("use_schema", schema=level.role)
                counts = self._one("purge", _Counts, before=before, number=level, **asdict(what))
            with self._connection.transaction():
                self._execute("use_schema", schema=level.role)
                of_purged = {"tenants": counts.tenants, "agents": counts.agents, "kind": what.kind}
                self._execute("clear_centers_of_purged", **of_purged)
            yield Purged(level, counts.items, counts.revisions)

    def purge_sessions(self, what: Purgeable, *, before: datetime) -> Iterator[list[PurgedSession]]:
        """Remove, in batches, sessions that were closed or expired before *before*, of the owner in *what*."""
        if what.tenant is None:
            tenants = [found.tenant for found in self._rows("list_tenants", _Tenant)]
        else:
            tenants = [what.tenant]
        for tenant in tenants:
            last = SessionId(UUID(int=0))
            while batch := self._rows(
                "purge_sessions",
                PurgedSession,
                before=before,
                tenant=tenant,
                agent=what.agent,
                last_session=last,
                most=_BATCH_SESSIONS,
            ):
                yield batch
                last = batch[-1].session_id

    def size(self) -> Size:
        """How many tenants and agents the database has."""
        return self._one("count_agents", Size)

    def epoch(self) -> Epoch:
        """The epoch of the database's server."""
        return epoch_of(self._connection)

    def freeze_host_keys(self, tenant: str) -> int:
        """Refuse the keys of *tenant* until they are thawed; return how many there were. Raises NoSuchTenant."""
        return self._one("freeze_host_keys", _Count, tenant=self._known_tenant(tenant)).rows

    def thaw_host_keys(self, tenant: str) -> int:
        """Accept the frozen keys of *tenant* again; return how many there were. Raises NoSuchTenant."""
        return self._one("thaw_host_keys", _Count, tenant=self._known_tenant(tenant)).rows

    def close_sessions(self, command: str, *, tenant: str | None = None, agent_id: str | None = None) -> int:
        """Close the open sessions of all tenants, of one *tenant*, or of one agent of it; return how many there were.

        *command* is the method in the audit log. Raises NoSuchTenant and NoSuchAgent.
        """
        _require_tenant(tenant, agent_id)
        number = None if tenant is None else self._known_tenant(tenant)
        agent = None if tenant is None or agent_id is None else self._agent(tenant, agent_id).agent
        whose = {"tenant": number, "agent": agent, "session_ids": None}
        return self._one("close_sessions", _Count, command=command, **whose).rows

    def sessions_of_host_key(self, host_key_id: UUID) -> list[OpenSession]:
        """The open sessions that a key has opened."""
        return self._rows("sessions_of_host_key", OpenSession, host_key_id=host_key_id)

    def close_sessions_of_host_key(self, host_key_id: UUID) -> int:
        """Close the open sessions that a key has opened; return how many there were."""
        found = self.sessions_of_host_key(host_key_id)
        if not found:
            return 0
        whose = {"tenant": found[0].tenant, "agent": None, "session_ids": [each.session_id for each in found]}
        return self._one("close_sessions", _Count, command="host-key revoke", **whose).rows

    def tenant_limits(self, tenant: str) -> TenantLimits:
        """The limits of *tenant*. Raises NoSuchTenant."""
        return self._one("get_tenant_limits", TenantLimits, tenant=self._known_tenant(tenant))

    def limit_tenant(self, tenant: str, limits: Mapping[str, int | None]) -> None:
        """Set those *limits* of *tenant*, by name, that are not None; -1 removes a limit. Raises NoSuchTenant."""
        self._execute("set_tenant_limits", tenant=self._known_tenant(tenant), **limits)

    def moving_tenants(self) -> list[MovingTenant]:
        """The tenants whose move to another server, or from one, has not ended."""
        return self._rows("list_moving", MovingTenant)

    def nearly_full_agents(self) -> dict[Classification, list[NearlyFull]]:
        """The agents that have stored most of what they may, by level."""
        found = {}
        for level in Classification:
            with self._connection.transaction():
                self._execute("use_schema", schema=level.role)
                found[level] = self._rows("nearly_full_agents", NearlyFull, part=NEARLY_FULL)
        return found

    def add_closed_sessions(self, load: Callable[[psycopg.Connection[Any]], None]) -> int:
        """Have *load* add sessions, and close them before anybody can use them; return how many were open."""
        with self._connection.transaction():
            lift_idle_timeout(self._connection)  # `pg_restore` may read for long before it finds the sessions
            load(self._connection)
            return self.close_sessions("restore")

    def journal(self) -> Journal:
        """What was erased, revoked and frozen: see `journal`."""
        return journal_of(self._connection)

    def end_restore(self, given: Sequence[Entry]) -> int:
        """Repeat what the restored database does not know of, and let servers use it; return how many entries."""
        with self._connection.transaction():
            self._execute("use_one_connection_to_each_node")
            repeated = replay(self._connection, given)
            restoring.end(self._connection)
        return repeated

    def reindex(self, *, tenant: str | None = None, agent_id: str | None = None) -> Iterator[Reindexed]:
        """Rebuild index and counts of all agents, of one *tenant*'s, or of one agent: see `search.reindex`."""
        return reindex(self._connection, tenant=tenant, agent_id=agent_id)

    def broken_ledgers(self) -> dict[Classification, int]:
        """How many items of each level are lost, or have lost versions: their revisions have a gap."""
        queries = ("lost_items", "broken_ledgers")
        return {level: sum(self._broken(level, query) for query in queries) for level in Classification}

    def broken_index(self) -> dict[Classification, int]:
        """How many entries of the search index are missing, stale or miscounted, by level."""
        return {level: self._broken(level, "broken_index") for level in Classification}

    def broken_storage(self) -> dict[Classification, int]:
        """How many agents have wrong counts of what they store, by level."""
        return {level: self._broken(level, "broken_storage") for level in Classification}

    def waiting_chunks(self) -> tuple[int, int]:
        """How many chunks are queued for embedding, and how many have an embedding of another model."""
        counts = []
        for level in Classification:
            with self._connection.transaction():
                self._execute("use_schema", schema=level.role)
                counts.append(self._one("count_waiting", _Waiting, embedder=EMBEDDER))
        return sum(count.waiting for count in counts), sum(count.outdated for count in counts)

    def remote_chunks(self) -> tuple[int, int]:
        """How many embeddings by models at addresses are waited for, and how many are stored."""
        counts = []
        for level in Classification:
            with self._connection.transaction():
                self._execute("use_schema", schema=level.role)
                counts.append(self._one("count_remote", _RemoteChunks))
        return sum(count.waiting for count in counts), sum(count.made for count in counts)

    def erasing(self) -> tuple[int, int]:
        """How many deleted agents are not yet erased, and how many items and versions of theirs are left."""
        left = 0
        for level in Classification:
            with self._connection.transaction():
                self._execute("use_schema", schema=level.role)
                left += self._one("count_erasing", _Count).rows
        return self._one("count_deleted_agents", _Count).rows, left

    def _broken(self, level: Classification, query: str) -> int:
        with self._connection.transaction():
            self._execute("use_schema", schema=level.role)
            return self._one(query, _Broken).broken

    def _known_tenant(self, name: str) -> TenantNumber:
        number = self._tenant(name)
        if number is None:
            raise NoSuchTenant(name)
        return number

    def _agent(self, tenant: str, agent_id: str) -> _Agent:
        agent = self._first("find_agent", _Agent, tenant_name=tenant, agent_id=agent_id)
        if agent is None:
            raise NoSuchAgent(f"{agent_id} of {tenant}")
        return agent

    def _tenant(self, name: str) -> TenantNumber | None:
        row = self._first("find_tenant", _Tenant, name=name)
        return row.tenant if row else None

    def _create_tenant(self, name: str, taken: Collection[TenantNumber]) -> TenantNumber:
        """Create a tenant. A lock replaces a unique index on names: every index begins with the tenant."""
        self._execute("lock_tenants")
        self._execute("skip_tenant_numbers", tenants=list(taken), range=RANGE)
        return self._tenant(name) or self._one("create_tenant", _Tenant, name=name).tenant

    @cached_property
    def _login(self) -> str:
        """Whom audit rows name."""
        return login_of(self._connection)

    def _execute(self, query: str, /, **parameters: object) -> None:
        self._connection.execute(_QUERIES[query], {**parameters, "login": self._login})

    def _rows(self, query: str, row: type[_R], /, **parameters: object) -> list[_R]:
        rows: list[_R] = self._cursor(query, row, parameters).fetchall()
        return rows

    def _first(self, query: str, row: type[_R], /, **parameters: object) -> _R | None:
        found: _R | None = self._cursor(query, row, parameters).fetchone()
        return found

    def _one(self, query: str, row: type[_R], /, **parameters: object) -> _R:
        found: _R = self._cursor(query, row, parameters).fetchone()
        return found

    def _cursor(self, query: str, row: type[_R], parameters: dict[str, object]) -> Any:
        cursor: Any = self._connection.cursor(row_factory=row_of(row))
        return cursor.execute(_QUERIES[query], {**parameters, "login": self._login})


def _require_tenant(tenant: str | None, agent_id: str | None) -> None:
    """Raise ValueError where an agent of no tenant would mean all agents of all tenants."""
    if agent_id is not None and tenant is None:
        raise ValueError("an agent id requires a tenant: two tenants may have agents of the same name")


@contextmanager
def connect_operator(admin: str) -> Iterator[Operator]:
    """An operator, connected to the database of the conninfo *admin* for the block.

    Raises NotCommitted at the end if a node of a cluster did not confirm a commit.
    """
    with administrator(operator_conninfo(admin), autocommit=True) as connection:
        yield Operator(connection)
