"""From a principal to the database: a scope is for one principal and one call, on the connection of its role."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from muniment_server.domain.classification import Classification, Integrity, Label, meet
from muniment_server.domain.errors import HostKeyExpired, QuotaExceeded, SessionExpired, StaleSession, Unauthenticated
from muniment_server.domain.ids import AgentNumber, HostKeyId, IdSource, SessionId, TenantNumber
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token, TokenKind
from muniment_server.monitor.audit_scope import AuditScope
from muniment_server.monitor.host_scope import HostScope
from muniment_server.monitor.policy import Method
from muniment_server.monitor.queries import HOST_QUERIES
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.placement import Databases
from muniment_server.postgres.pool import RoleConnection
from muniment_server.postgres.rows import maker_of, row_of

_Groups: TypeAlias = Mapping[tuple[TenantNumber, TokenKind], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class _Closed:
    session_id: object


@dataclass(frozen=True, slots=True)
class _FoundKey:
    token_hash: bytes
    expired: bool
    host_key_id: HostKeyId
    ceiling: Classification
    only_service: str | None
    trusted: bool


@dataclass(frozen=True, slots=True)
class _FoundSession:
    token_hash: bytes
    expired: bool
    session_id: SessionId
    agent: AgentNumber
    taint: Label
    calls_per_second: int
    memory_ttl: timedelta
    passage_ttl: timedelta
    read_only: bool


_LOOKUPS: Mapping[TokenKind, tuple[str, type[Any]]] = {
    TokenKind.HOST: (HOST_QUERIES["find_host_keys"], _FoundKey),
    TokenKind.SESSION: (HOST_QUERIES["find_sessions"], _FoundSession),
}


class Scopes:
    """Opens scopes. A servicer does not see this: its call opens the scope of its own principal, and no other."""

    def __init__(self, databases: Databases, ids: IdSource, *, audit_reads_from: Classification) -> None:
        self.databases = databases
        self._ids = ids
        self._audit_reads_from = meet(audit_reads_from, Classification.CONFIDENTIAL)
        """Reads are audited at this level and above. Configuration can only widen that."""

    def find_holders(
        self, wanted: Collection[Token], deadline: Deadline
    ) -> dict[Token, HostIdentity | SessionIdentity | Unauthenticated]:
        """The holders of those tokens that are valid, and what to refuse the others with. Never cached.

        One query for each tenant and kind, because every query is restricted to one tenant. They share one round trip:
        tokens may be guesses, which name as many tenants as they like. All of them name tenants of one server.
        """
        groups: dict[tuple[TenantNumber, TokenKind], list[bytes]] = {}
        for token in wanted:
            groups.setdefault((token.tenant, token.kind), []).append(token.hash)
        (database,) = {self.databases.holding(token.tenant) for token in wanted}
        with database.connection(roles.CONTROL, deadline) as connection:
            found = dict(_holder(*group, row) for group, rows in _find(connection, groups) for row in rows)
        return {token: found.get(token, Unauthenticated()) for token in wanted}

    @contextmanager
    def of_session(self, session: SessionIdentity, method: Method, deadline: Deadline) -> Iterator[SessionScope]:
        """The scope of *session*. Its statements raise StaleSession once the taint or the session has changed."""
        with self.databases.of(session.tenant).connection(session.taint.role, deadline) as connection:
            scope = SessionScope(
                connection,
                session,
                self._ids,
                method=method.name,
                flow=method.flow,
                audit_reads=self._audit_reads_from.can_flow_to(session.taint.level),
            )
            try:
                yield scope
                scope.require_audit()
            except QuotaExceeded:
                scope.record_refusal("QUOTA_EXCEEDED")
                raise
            finally:
                scope.end()

    @contextmanager
    def of_host(
        self, host: HostIdentity, method: Method, deadline: Deadline, *, role: str = roles.CONTROL
    ) -> Iterator[HostScope]:
        """The scope of *host*, on a connection of the control role, or of the eraser."""
        with self.databases.of(host.tenant).connection(role, deadline) as connection:
            scope = HostScope(connection, host, self._ids, method=method.name)
            try:
                yield scope
            finally:
                scope.end()

    @contextmanager
    def of_auditor(self, host: HostIdentity, deadline: Deadline) -> Iterator[AuditScope]:
        """What *host* may read of the audit log."""
        with self.databases.of(host.tenant).connection(roles.AUDITOR, deadline) as connection:
            scope = AuditScope(connection, host)
            try:
                yield scope
            finally:
                scope.end()

    def close_own_session(self, session: SessionIdentity, deadline: Deadline) -> None:
        """Close *session* itself. Raises StaleSession if it is not open any more."""
        parameters = {
            "tenant": session.tenant,
            "session_id": session.session_id,
            "ceiling": Classification.RESTRICTED,
            "key_trusted": True,
            "host_key_id": None,
            "change_id": self._ids.new_uuid(),
        }
        with self.databases.of(session.tenant).connection(roles.CONTROL, deadline) as connection:
            if not connection.read(HOST_QUERIES["close_session"], parameters, maker_of(_Closed)):
                raise StaleSession

    def record_denial(
        self, principal: HostIdentity | SessionIdentity, method: Method, outcome: str, deadline: Deadline
    ) -> None:
        """Write the audit row of a call whose method is not for its principal."""
        if isinstance(principal, SessionIdentity):
            with self.of_session(principal, method, deadline) as session:
                session.record_refusal(outcome)
        else:
            with self.of_host(principal, method, deadline) as host:
                host.record_refusal(outcome)


def _find(connection: RoleConnection, groups: _Groups) -> list[tuple[tuple[TenantNumber, TokenKind], list[Any]]]:
    """The rows behind the hashes of tokens, by tenant and kind."""
    lookups = [
        (group, *_LOOKUPS[group[1]], {"tenant": group[0], "token_hashes": hashes}) for group, hashes in groups.items()
    ]
    if len(lookups) == 1:  # nearly always; costs half as much without a pipeline
        return [(group, connection.read(text, given, maker_of(row))) for group, text, row, given in lookups]
    with connection.pipeline():
        cursors = [
            (group, connection.cursor(row_factory=row_of(row)).execute(text, given))
            for group, text, row, given in lookups
        ]
    return [(group, cursor.fetchall()) for group, cursor in cursors]


def _holder(
    tenant: TenantNumber, kind: TokenKind, row: _FoundKey | _FoundSession
) -> tuple[Token, HostIdentity | SessionIdentity | Unauthenticated]:
    token = Token(kind, tenant, row.token_hash)
    if row.expired:
        return token, HostKeyExpired() if isinstance(row, _FoundKey) else SessionExpired()
    if isinstance(row, _FoundKey):
        return token, HostIdentity(tenant, row.host_key_id, row.ceiling, row.only_service, Integrity(row.trusted))
    return token, SessionIdentity(
        tenant,
        row.session_id,
        row.taint,
        row.agent,
        row.calls_per_second,
        memory_ttl=row.memory_ttl,
        passage_ttl=row.passage_ttl,
        read_only=row.read_only,
    )
