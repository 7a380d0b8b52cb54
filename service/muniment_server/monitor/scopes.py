"""From a principal to the database: a scope is for one principal and one call, on the connection of its role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from muniment_server.domain.classification import Classification, meet
from muniment_server.domain.errors import StaleSession
from muniment_server.domain.ids import IdSource
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.monitor.audit_scope import AuditScope
from muniment_server.monitor.host_scope import HostScope
from muniment_server.monitor.policy import Method
from muniment_server.monitor.queries import HOST_QUERIES
from muniment_server.monitor.session_scope import SessionScope
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Deadline
from muniment_server.postgres.pool import Database
from muniment_server.postgres.rows import row_of

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class _Closed:
    session_id: object


class Scopes:
    """Opens scopes. A servicer does not see this: its call opens the scope of its own principal, and no other."""

    def __init__(self, database: Database, ids: IdSource, *, audit_reads_from: Classification) -> None:
        self._database = database
        self._ids = ids
        self._audit_reads_from = meet(audit_reads_from, Classification.CONFIDENTIAL)
        """Reads are audited at this level and above. Configuration can only widen that."""

    def find_host(self, token: Token, deadline: Deadline) -> HostIdentity | None:
        """The holder of *token*, or None if the key is unknown or revoked. Never cached."""
        return self._find("find_host_key", HostIdentity, token, deadline)

    def find_session(self, token: Token, deadline: Deadline) -> SessionIdentity | None:
        """The holder of *token*, with its current taint, or None if there is no such open session."""
        return self._find("find_session", SessionIdentity, token, deadline)

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
    def of_host(self, host: HostIdentity, method: Method, deadline: Deadline) -> Iterator[HostScope]:
        """The scope of *host*."""
        with self._database.connection(roles.CONTROL, deadline) as connection:
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
        if self._first("close_session", _Closed, parameters, deadline) is None:
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

    def _find(self, name: str, row: type[_R], token: Token, deadline: Deadline) -> _R | None:
        return self._first(name, row, {"tenant": token.tenant, "token_hash": token.hash}, deadline)

    def _first(self, name: str, row: type[_R], parameters: dict[str, Any], deadline: Deadline) -> _R | None:
        with self._database.connection(roles.CONTROL, deadline) as connection:
            cursor = connection.cursor(row_factory=row_of(row))
            return cursor.execute(HOST_QUERIES[name], parameters).fetchone()
