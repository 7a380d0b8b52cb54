"""From a principal to the database: a scope is for one principal and one call, on the connection of its role."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from muniment_server.domain.classification import Classification, meet
from muniment_server.domain.errors import StaleSession
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
from muniment_server.postgres.pool import Database, RoleConnection
from muniment_server.postgres.rows import maker_of

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class _Closed:
    session_id: object


@dataclass(frozen=True, slots=True)
class _FoundKey:
    token_hash: bytes
    host_key_id: HostKeyId
    ceiling: Classification


@dataclass(frozen=True, slots=True)
class _FoundSession:
    token_hash: bytes
    session_id: SessionId
    agent: AgentNumber
    taint: Classification


class Scopes:
    """Opens scopes. A servicer does not see this: its call opens the scope of its own principal, and no other."""

    def __init__(self, database: Database, ids: IdSource, *, audit_reads_from: Classification) -> None:
        self._database = database
        self._ids = ids
        self._audit_reads_from = meet(audit_reads_from, Classification.CONFIDENTIAL)
        """Reads are audited at this level and above. Configuration can only widen that."""

    def find_holders(
        self, wanted: Collection[Token], deadline: Deadline
    ) -> dict[Token, HostIdentity | SessionIdentity]:
        """The holders of those tokens that are valid: keys that are not revoked, and open sessions. Never cached.

        One query for each tenant and kind, so that each runs on the machine of its tenant.
        """
        found: dict[Token, HostIdentity | SessionIdentity] = {}
        groups: dict[tuple[TenantNumber, TokenKind], list[bytes]] = {}
        for token in wanted:
            groups.setdefault((token.tenant, token.kind), []).append(token.hash)
        with self._database.connection(roles.CONTROL, deadline) as connection:
            for (tenant, kind), hashes in groups.items():
                if kind is TokenKind.HOST:
                    for key in _find(connection, "find_host_keys", _FoundKey, tenant, hashes):
                        found[Token(kind, tenant, key.token_hash)] = HostIdentity(tenant, key.host_key_id, key.ceiling)
                else:
                    for session in _find(connection, "find_sessions", _FoundSession, tenant, hashes):
                        identity = SessionIdentity(tenant, session.session_id, session.taint, session.agent)
                        found[Token(kind, tenant, session.token_hash)] = identity
        return found

    @contextmanager
    def of_session(self, session: SessionIdentity, method: Method, deadline: Deadline) -> Iterator[SessionScope]:
        """The scope of *session*. Its statements raise StaleSession once the taint or the session has changed."""
        with self._database.connection(session.taint.role, deadline) as connection:
            scope = SessionScope(
                connection,
                session,
                self._ids,
                method=method.name,
                flow=method.flow,
                audit_reads=self._audit_reads_from.can_flow_to(session.taint),
            )
            try:
                yield scope
                scope.require_audit()
            finally:
                scope.end()

    @contextmanager
    def of_host(
        self, host: HostIdentity, method: Method, deadline: Deadline, *, role: str = roles.CONTROL
    ) -> Iterator[HostScope]:
        """The scope of *host*, on a connection of the control role, or of the eraser."""
        with self._database.connection(role, deadline) as connection:
            scope = HostScope(connection, host, self._ids, method=method.name)
            try:
                yield scope
            finally:
                scope.end()

    @contextmanager
    def of_auditor(self, host: HostIdentity, deadline: Deadline) -> Iterator[AuditScope]:
        """What *host* may read of the audit log."""
        with self._database.connection(roles.AUDITOR, deadline) as connection:
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
            "host_key_id": None,
            "change_id": self._ids.new_uuid(),
        }
        with self._database.connection(roles.CONTROL, deadline) as connection:
            if not connection.read(HOST_QUERIES["close_session"], parameters, maker_of(_Closed)):
                raise StaleSession

    def record_wrong_principal(
        self, principal: HostIdentity | SessionIdentity, method: Method, deadline: Deadline
    ) -> None:
        """Write the audit row of a call whose method is not for its principal."""
        if isinstance(principal, SessionIdentity):
            with self.of_session(principal, method, deadline) as session:
                session.record_refusal("PRINCIPAL_NOT_ALLOWED")
        else:
            with self.of_host(principal, method, deadline) as host:
                host.record_refusal("PRINCIPAL_NOT_ALLOWED", level=Classification.PUBLIC)


def _find(
    connection: RoleConnection, name: str, row: type[_R], tenant: TenantNumber, hashes: Sequence[bytes]
) -> list[_R]:
    """The rows of one tenant behind the hashes of tokens."""
    parameters = {"tenant": tenant, "token_hashes": hashes}
    return [found for found in connection.read(HOST_QUERIES[name], parameters, maker_of(row)) if found is not None]
