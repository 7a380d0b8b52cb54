"""What one host may read of the audit log, on the connection of the auditor."""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg

from muniment_server.domain.principals import HostIdentity
from muniment_server.monitor.policy import PolicyViolation
from muniment_server.monitor.queries import AUDIT_QUERIES
from muniment_server.postgres.rows import row_of

_R = TypeVar("_R")


class AuditScope:
    """The audit rows of one host's tenant that its key may see."""

    def __init__(self, connection: psycopg.Connection[Any], host: HostIdentity) -> None:
        self._connection = connection
        self._host = host
        self._ended = False

    def end(self) -> None:
        """End the scope with its call. Code that has kept it can no longer use it, not even for another call."""
        self._ended = True

    def rows(self, name: str, row: type[_R], /, **parameters: object) -> list[_R]:
        """Run a named query. Whatever the parameters say, it runs for this host."""
        if self._ended:
            raise PolicyViolation(f"{name} is run in a scope after its end")
        cursor: Any = self._connection.cursor(row_factory=row_of(row))
        identity = {
            "tenant": self._host.tenant,
            "ceiling": self._host.ceiling,
            "host_key_id": self._host.host_key_id,
        }
        rows: list[_R] = cursor.execute(AUDIT_QUERIES[name], {**parameters, **identity}).fetchall()
        return rows
