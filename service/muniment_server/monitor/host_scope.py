"""The control role's connection, as far as one host may use it in one call."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import IdSource
from muniment_server.domain.records import HostIdentity
from muniment_server.postgres import queries
from muniment_server.postgres.deadline import Call
from muniment_server.postgres.pool import RoleConnection

QUERIES = queries.load("hosts", "sharing")


class Control:
    """The control role's connection, bound to one host and one call: to its tenant, key and ceiling."""

    def __init__(self, connection: RoleConnection, host: HostIdentity, call: Call, ids: IdSource) -> None:
        self.connection = connection
        self.host = host
        self.ids = ids
        self._call = call

    def execute(self, query: str, /, **parameters: object) -> Any:
        """Run a named query; return its cursor."""
        parameters |= {
            "tenant": self.host.tenant,
            "host_key_id": self.host.host_key_id,
            "ceiling": self.host.ceiling,
        }
        return self.connection.execute(QUERIES[query], parameters)

    def change(self, query: str, /, **parameters: object) -> Any:
        """Run a named query that writes an audit row; return its first row, or None."""
        return self.execute(query, change_id=self.ids.new_uuid(), **parameters).fetchone()

    def refuse(
        self, outcome: str, *, level: Classification, agent_id: str | None = None, session_id: UUID | None = None
    ) -> None:
        """Write the audit row of a call that a rule refused before it came to a statement."""
        self.execute(
            "record_host_refusal",
            change_id=self.ids.new_uuid(),
            level=level,
            agent_id=agent_id,
            session_id=session_id,
            method=self._call.method,
            outcome=outcome,
        )
