"""What one host may do, on the connection of the control role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from muniment_server.domain.classification import Classification, Integrity
from muniment_server.domain.errors import (
    AgentAboveCeiling,
    AgentHeld,
    AgentNotFound,
    CeilingExceeded,
    IntegrityExceeded,
    Refusal,
)
from muniment_server.domain.ids import IdSource, SessionId, TenantNumber
from muniment_server.domain.principals import HostIdentity
from muniment_server.monitor.policy import PolicyViolation
from muniment_server.monitor.queries import HOST_QUERIES, HOST_STATEMENTS
from muniment_server.monitor.status import code_of
from muniment_server.postgres.pool import RoleConnection
from muniment_server.postgres.rows import row_of
from muniment_server.postgres.transaction import transaction

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class _Known:
    agent_id: str
    ceiling: Classification
    held: bool


class HostScope:
    """The agents, sessions and shared blocks of one host's tenant, up to its ceiling, for one call."""

    def __init__(self, connection: RoleConnection, host: HostIdentity, ids: IdSource, *, method: str) -> None:
        self._connection = connection
        self._host = host
        self._ids = ids
        self._method = method
        self._ended = False

    def end(self) -> None:
        """End the scope with its call. Code that has kept it can no longer use it, not even for another call."""
        self._ended = True

    @property
    def tenant(self) -> TenantNumber:
        """The tenant of the host."""
        return self._host.tenant

    def new_uuid(self) -> UUID:
        """A new id that may leave the server."""
        return self._ids.new_uuid()

    def new_number(self) -> int:
        """A new internal id."""
        return self._ids.new_number()

    def new_secret(self) -> bytes:
        """The secret of a new token."""
        return self._ids.new_secret()

    def execute(self, name: str, /, **parameters: object) -> None:
        """Run a named statement whose rows do not matter, such as a lock."""
        self._run(name, parameters)

    def rows(self, name: str, row: type[_R], /, **parameters: object) -> list[_R | None]:
        """Run a named query. None stands for a row of nulls."""
        rows: list[_R | None] = self._run(name, parameters, row).fetchall()
        return rows

    def first(self, name: str, row: type[_R], /, **parameters: object) -> _R | None:
        """Run a named query and return its first row, or None."""
        found: _R | None = self._run(name, parameters, row).fetchone()
        return found

    def change(self, name: str, row: type[_R], /, **parameters: object) -> _R | None:
        """Run a named statement that writes an audit row; return its first row, or None."""
        return self.first(name, row, change_id=self.new_uuid(), **parameters)

    def send(self, name: str, row: type[_R], /, **parameters: object) -> Callable[[], _R | None]:
        """The same as `first` within a transaction, without waiting: call the result to get the row."""
        cursor = self._run(name, parameters, row)
        return lambda: cursor.fetchone()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction, for changes that first take a lock: a waiting statement does not see what it waited for.

        Statements are pipelined. Call what `send` returned only after the commit.
        """
        with transaction(self._connection):
            yield

    @property
    def ceiling(self) -> Classification:
        """The ceiling of the host key."""
        return self._host.ceiling

    def require_ceiling(
        self, level: Classification, *, agent_id: str | None = None, session_id: SessionId | None = None
    ) -> None:
        """Refuse, with an audit row, a *level* above the ceiling of the host key. Raises CeilingExceeded."""
        if not level.can_flow_to(self._host.ceiling):
            self.record_refusal("CEILING_EXCEEDED", level=level, agent_id=agent_id, session_id=session_id)
            raise CeilingExceeded

    def require_integrity(
        self, integrity: Integrity, *, agent_id: str | None = None, session_id: SessionId | None = None
    ) -> None:
        """Refuse, with an audit row, what is TRUSTED, if the key is not. Raises IntegrityExceeded."""
        if not self._host.integrity.can_flow_to(integrity):
            self.raise_integrity_exceeded(agent_id=agent_id, session_id=session_id)

    def raise_integrity_exceeded(self, *, agent_id: str | None = None, session_id: SessionId | None = None) -> NoReturn:
        """Raise IntegrityExceeded, with an audit row: the call is for keys that are trusted."""
        self.record_refusal("INTEGRITY_EXCEEDED", agent_id=agent_id, session_id=session_id)
        raise IntegrityExceeded

    def raise_unmanageable(self, *agent_ids: str) -> NoReturn:
        """Raise AgentAboveCeiling, with an audit row, if the key knows one of the agents without reaching its ceiling.

        AgentHeld, if the key reaches that and the agent is held. Otherwise AgentNotFound. Call it when a statement that
        changes agents has found none.
        """
        known = self._execute("find_known_agent", {"agent_ids": list(agent_ids)}, _Known).fetchone()
        reached = known is not None and known.ceiling.can_flow_to(self._host.ceiling)
        if known is None or (reached and not known.held):
            raise AgentNotFound
        self.record_refusal("AGENT_HELD" if reached else "AGENT_ABOVE_CEILING", agent_id=known.agent_id)
        raise AgentHeld if reached else AgentAboveCeiling

    def record_refusal(
        self,
        outcome: str,
        *,
        level: Classification | None = None,
        agent_id: str | None = None,
        session_id: SessionId | None = None,
    ) -> None:
        """Write the audit row of a refused call, at the ceiling of the host key, or at *level* if that is higher."""
        refused = {"level": level, "agent_id": agent_id, "session_id": session_id, "outcome": outcome}
        self._execute("record_host_refusal", {"change_id": self.new_uuid(), **refused})

    def refuse(self, refusal: Refusal, *, agent_id: str | None = None) -> NoReturn:
        """Raise *refusal*, with an audit row."""
        self.record_refusal(self.reason_of(refusal), agent_id=agent_id)
        raise refusal

    @staticmethod
    def reason_of(refusal: Refusal) -> str:
        """The reason that the caller receives, for the audit."""
        return code_of(refusal)[1]

    def _run(self, name: str, parameters: Mapping[str, object], row: type[Any] | None = None) -> Any:
        if name not in HOST_STATEMENTS:
            raise PolicyViolation(f"{name} is no statement of a noun: see HOST_STATEMENTS in monitor/queries.py")
        return self._execute(name, parameters, row)

    def _execute(self, name: str, parameters: Mapping[str, object], row: type[Any] | None = None) -> Any:
        """Run a named query. Whatever the parameters say, it runs as this host and method."""
        if self._ended:
            raise PolicyViolation(f"{self._method} uses a scope after its end")
        cursor: Any = self._connection.cursor(row_factory=row_of(row)) if row else self._connection.cursor()
        identity = {
            "tenant": self._host.tenant,
            "host_key_id": self._host.host_key_id,
            "ceiling": self._host.ceiling,
            "key_trusted": self._host.integrity is Integrity.TRUSTED,
            "method": self._method,
        }
        return cursor.execute(HOST_QUERIES[name], {**parameters, **identity})
