"""What one session may do, on the connection of its level.

Every statement is one of `queries.SESSION_QUERIES`, composed with the session predicate. The predicate matches the
session's row at the level of the connection's role. If the taint was raised meanwhile, or the session has ended, it
matches no row: the statement has no effect, and the call fails with StaleSession.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from muniment_server.domain.classification import Label
from muniment_server.domain.errors import (
    BudgetExceeded,
    EtagStale,
    Refusal,
    StaleSession,
    TierDisabled,
    WriteLevelMismatch,
)
from muniment_server.domain.ids import IdSource
from muniment_server.domain.items import ItemKind, Version
from muniment_server.domain.limits import KnownRoom
from muniment_server.domain.principals import SessionIdentity
from muniment_server.domain.session import Session
from muniment_server.monitor.policy import Flow, PolicyViolation
from muniment_server.monitor.queries import READS, SESSION_QUERIES, WRITES
from muniment_server.postgres.pool import RoleConnection
from muniment_server.postgres.rows import maker_of, row_of
from muniment_server.postgres.transaction import transaction

_R = TypeVar("_R")
_S = TypeVar("_S")

_AUDITED: Mapping[type[Refusal], str] = {
    BudgetExceeded: "BUDGET_EXCEEDED",
    EtagStale: "ETAG_STALE",
    TierDisabled: "TIER_DISABLED",
    WriteLevelMismatch: "WRITE_LEVEL_MISMATCH",
}
"""The refusals under the write lock that write an audit row. Other writes record theirs in their own statement."""


@dataclass(frozen=True, slots=True)
class Query(Generic[_R]):
    """A named query, the dataclass of its rows, and its parameters."""

    name: str
    row: type[_R]
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Statement:
    """A named statement whose rows do not matter, and its parameters."""

    name: str
    parameters: Mapping[str, object]


class Pending(Generic[_R]):
    """The row of a write, once its transaction has been committed."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def row(self) -> _R:
        """The row. Raises StaleSession if there is none."""
        row: _R = _rows_or_stale(self._cursor.fetchall())[0]
        return row


@dataclass(frozen=True, slots=True)
class _Locked:
    agent_id: str


class SessionScope:
    """The items of one session's agent at or below its taint, for one call. Writes go to the level of the taint."""

    def __init__(
        self,
        connection: RoleConnection,
        session: SessionIdentity,
        ids: IdSource,
        *,
        method: str,
        flow: Flow,
        audit_reads: bool,
    ) -> None:
        self._connection = connection
        self._session = session
        self._ids = ids
        self._method = method
        self._flow = flow
        self._audit_reads = audit_reads
        self._unaudited = False
        """Whether something was read and no audit row has been written since."""
        self._ended = False

    @property
    def taint(self) -> Label:
        """The label of the connection: what is read can flow to it, what is written has it."""
        return self._session.taint

    @property
    def room(self) -> KnownRoom:
        """What is known of how much the session may still write."""
        return self._session.room

    def expiry_of(self, kind: ItemKind) -> datetime | None:
        """When an item expires that is written now and names no expire time."""
        ttl = self._session.time_to_live(kind)
        return datetime.now(UTC) + ttl if ttl else None

    def new_uuid(self) -> UUID:
        """A new id, for an item or a change."""
        return self._ids.new_uuid()

    def session(self) -> Session:
        """The session itself. Raises StaleSession."""
        return self._read(Query("get_own_session", Session, {}))[0]

    def look_up(self, query: Query[_R]) -> list[_R]:
        """Run a query. The caller must call `record_read` with what the answer shows. Raises StaleSession."""
        _require(query.name, READS)
        self._unaudited = True
        return self._read(query)

    def look_up_both(self, one: Query[_R], other: Query[_S]) -> tuple[list[_R], list[_S]]:
        """Run two queries in one round trip. Otherwise as `look_up`."""
        queries: tuple[Query[Any], Query[Any]] = (one, other)
        for query in queries:
            _require(query.name, READS)
        self._unaudited = True
        first, second = self._connection.read_all([(*self._bound(query), maker_of(query.row)) for query in queries])
        return _found(first), _found(second)

    def record_read(self, kind: ItemKind | None, shown: Sequence[Version]) -> None:
        """Write the audit row of a read, at levels where reads are audited. *shown* is what the answer contains.

        Raises StaleSession if it cannot be written: the answer must not be sent then.
        """
        if not self._audit_reads:
            return
        only = shown[0] if len(shown) == 1 else None
        parameters = {
            "change_id": self.new_uuid(),
            "kind": kind,
            "item_id": only and only.item_id,
            "revision": only and only.revision,
            "result_count": len(shown),
        }
        if self._connection.write(SESSION_QUERIES["record_read"], self._parameters(parameters)) != 1:
            raise StaleSession
        self._unaudited = False

    def require_audit(self) -> None:
        """In a method that reads items, check that every read was recorded. No answer is sent without its audit row.

        Raises PolicyViolation.
        """
        if self._audit_reads and self._unaudited and self._flow is Flow.READ:
            raise PolicyViolation(f"{self._method} has read items without an audit row")

    def record_refusal(self, outcome: str) -> None:
        """Write the audit row of a refused call. Raises StaleSession."""
        _must_write_one(self._refuse(outcome))

    def write(self, query: Query[_R], *then: Statement) -> list[_R]:
        """Run a write with its audit row, and the statements that maintain the search index; all or none.

        Raises StaleSession.
        """
        self._require_write_access(query.name, *(statement.name for statement in then))
        statements = [self._bound(query), *map(self._bound, then)]
        return _rows_or_stale(self._connection.write_all(statements, maker_of(query.row)))

    @contextmanager
    def write_lock(self) -> Iterator[WriteLock]:
        """A transaction that is the only writer of notes and blocks of its agent at its level.

        For writes that depend on what they read. A refusal that is raised before the first write writes its audit row.
        """
        with self._transaction():
            lock = WriteLock(self, self._execute("lock_writes", {}, _Locked))
            try:
                yield lock
                return
            except Refusal as raised:
                if type(raised) not in _AUDITED or lock.has_written:
                    raise
                refusal = raised
                refused = self._refuse(_AUDITED[type(raised)])
        _must_write_one(refused)
        raise refusal

    def end(self) -> None:
        """End the scope with its call. Code that has kept it can no longer use it, not even for another call."""
        self._ended = True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._require_write_access()
        with transaction(self._connection):
            yield

    def _require_write_access(self, *names: str) -> None:
        if self._flow is not Flow.WRITE:
            raise PolicyViolation(f"{self._method} writes, and its policy does not say so")
        for name in names:
            _require(name, WRITES)

    def _read(self, query: Query[_R]) -> list[_R]:
        return _found(self._connection.read(*self._bound(query), maker_of(query.row)))

    def _write(self, query: Query[_R], *then: Statement) -> Any:
        self._require_write_access(query.name, *(statement.name for statement in then))
        cursor = self._execute(query.name, query.parameters, query.row)
        for statement in then:
            self._execute(statement.name, statement.parameters)
        return cursor

    def _refuse(self, outcome: str) -> Any:
        return self._execute("record_refusal", {"change_id": self.new_uuid(), "outcome": outcome})

    def _execute(self, name: str, parameters: Mapping[str, object], row: type[Any] | None = None) -> Any:
        """Run a named query in a pipeline; return its cursor."""
        cursor: Any = self._connection.cursor(row_factory=row_of(row)) if row else self._connection.cursor()
        return cursor.execute(SESSION_QUERIES[name], self._parameters(parameters))

    def _bound(self, query: Query[Any] | Statement) -> tuple[str, Mapping[str, object]]:
        """The text of a named statement, and its parameters as `_parameters` completes them."""
        return SESSION_QUERIES[query.name], self._parameters(query.parameters)

    def _parameters(self, given: Mapping[str, object]) -> dict[str, object]:
        """*given*, with the parameters of this session and method, which override any of the same name."""
        if self._ended:
            raise PolicyViolation(f"{self._method} uses a scope after its end")
        identity = {"tenant": self._session.tenant, "session_id": self._session.session_id, "method": self._method}
        return {**given, **identity}


class WriteLock:
    """A transaction under the write lock."""

    def __init__(self, scope: SessionScope, locked: Any) -> None:
        self._scope = scope
        self._locked = locked
        self.has_written = False

    def agent_id(self) -> str:
        """The id of the session's agent. Raises StaleSession."""
        return str(_rows_or_stale(self._locked.fetchall())[0].agent_id)

    def look_up(self, query: Query[_R]) -> list[_R]:
        """Run a query under the lock. Raises StaleSession."""
        _require(query.name, READS)
        return _found(self._scope._execute(query.name, query.parameters, query.row).fetchall())

    def write(self, query: Query[_R], *then: Statement) -> Pending[_R]:
        """Run a write with its audit row, and statements that maintain the index. The row is there after the commit."""
        self.has_written = True
        return Pending(self._scope._write(query, *then))


def _require(name: str, allowed: frozenset[str]) -> None:
    if name not in allowed:
        kind = "read" if allowed is READS else "write"
        raise PolicyViolation(f"{name} is no {kind} of a noun: see READS and WRITES in monitor/queries.py")


def _rows_or_stale(rows: list[Any]) -> list[Any]:
    if not rows:
        raise StaleSession
    return rows


def _found(rows: Sequence[_R | None]) -> list[_R]:
    """The rows, without the row of nulls, which means that the session is open and nothing was found."""
    if not rows:
        raise StaleSession
    return [row for row in rows if row is not None]


def _must_write_one(cursor: Any) -> None:
    if cursor.rowcount != 1:
        raise StaleSession
