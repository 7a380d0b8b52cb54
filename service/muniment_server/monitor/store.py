"""The store: what one principal may see and do, handed out as a view that can do nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muniment_server.agents.repository import Agents
from muniment_server.audit_log.repository import Audit
from muniment_server.blocks.repository import Blocks
from muniment_server.blocks.sharing import Sharing
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import StaleSession
from muniment_server.domain.ids import IdSource
from muniment_server.domain.records import HostIdentity, Session, SessionIdentity
from muniment_server.domain.tokens import Token
from muniment_server.memories.repository import Memories
from muniment_server.monitor.host_scope import QUERIES as HOST_QUERIES
from muniment_server.monitor.host_scope import Control
from muniment_server.monitor.session_scope import Fence
from muniment_server.notes.repository import Notes
from muniment_server.passages.repository import Passages
from muniment_server.postgres import roles
from muniment_server.postgres.deadline import Call, Lifetime
from muniment_server.postgres.pool import Database
from muniment_server.prompts.repository import Prompts
from muniment_server.search.embeddings import Embed, nobody
from muniment_server.sessions.repository import Sessions, session_of_row


class SessionView:
    """What one session sees, on its level's connection."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self.memories = Memories(fence)
        self.notes = Notes(fence)
        self.blocks = Blocks(fence)
        self.passages = Passages(fence)
        self.prompts = Prompts(fence)

    def new_id(self) -> str:
        """An id for an item that its writer gave none."""
        return str(self._fence.ids.new_uuid())

    def session(self) -> Session:
        """The session itself."""
        return session_of_row(self._fence.look("get_own_session")[0])

    def refuse(self, outcome: str) -> None:
        """Write the audit row of a call that a rule refused before it came to a statement."""
        self._fence.refuse(outcome)


class HostView:
    """What one host manages, on the control role's connection."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.agents = Agents(control)
        self.sessions = Sessions(control)
        self.sharing = Sharing(control)

    def refuse(self, outcome: str, *, level: Classification) -> None:
        """Write the audit row of a call that a rule refused before it came to a statement."""
        self._control.refuse(outcome, level=level)


class Store:
    """The way to everything that is kept. Every view belongs to one principal and one call."""

    def __init__(
        self, database: Database, ids: IdSource, *, audit_reads_from: Classification, embed: Embed = nobody
    ) -> None:
        self._database = database
        self._ids = ids
        self._embed = embed
        self._audit_reads_from = min(audit_reads_from, Classification.CONFIDENTIAL)

    def find_host(self, token: Token, lifetime: Lifetime) -> HostIdentity | None:
        """Who holds *token*; None when the key is unknown or revoked. Never cached: revoked is revoked."""
        row = self._find("find_host_key", token, lifetime)
        return row and HostIdentity(row.tenant, row.host_key_id, Classification(row.ceiling))

    def find_session(self, token: Token, lifetime: Lifetime) -> SessionIdentity | None:
        """Who holds *token*, with the taint as it is now; None when there is no such open session."""
        row = self._find("find_session", token, lifetime)
        return row and SessionIdentity(row.tenant, row.session_id, Classification(row.taint))

    @contextmanager
    def as_session(self, session: SessionIdentity, call: Call) -> Iterator[SessionView]:
        """The items at or below the session's taint. Raises StaleSession when the taint is not what it was."""
        with self._database.connection(session.taint.role, call.lifetime) as connection:
            audit_reads = session.taint >= self._audit_reads_from
            yield SessionView(Fence(connection, session, call, self._ids, audit_reads=audit_reads, embed=self._embed))

    @contextmanager
    def as_host(self, host: HostIdentity, call: Call) -> Iterator[HostView]:
        """The agents and sessions of the host's tenant."""
        with self._database.connection(roles.CONTROL, call.lifetime) as connection:
            yield HostView(Control(connection, host, call, self._ids))

    @contextmanager
    def as_auditor(self, host: HostIdentity, call: Call) -> Iterator[Audit]:
        """The audit events of the host's tenant, up to its ceiling."""
        with self._database.connection(roles.AUDITOR, call.lifetime) as connection:
            yield Audit(connection, host)

    def close_own_session(self, session: SessionIdentity, call: Call) -> None:
        """Close the session itself. Raises StaleSession when it is not open any more."""
        with self._database.connection(roles.CONTROL, call.lifetime) as connection:
            closed = connection.execute(
                HOST_QUERIES["close_session"],
                {
                    "tenant": session.tenant,
                    "session_id": session.session_id,
                    "ceiling": Classification.RESTRICTED,
                    "host_key_id": None,
                    "change_id": self._ids.new_uuid(),
                },
            ).fetchone()
        if closed is None:
            raise StaleSession

    def record_wrong_principal(self, principal: HostIdentity | SessionIdentity, call: Call) -> None:
        """Write the audit row of a caller that the method is not for."""
        if isinstance(principal, SessionIdentity):
            with self.as_session(principal, call) as session:
                session.refuse("PRINCIPAL_NOT_ALLOWED")
        else:
            with self.as_host(principal, call) as host:
                host.refuse("PRINCIPAL_NOT_ALLOWED", level=Classification.PUBLIC)

    def _find(self, query: str, token: Token, lifetime: Lifetime) -> Any:
        with self._database.connection(roles.CONTROL, lifetime) as connection:
            return connection.execute(
                HOST_QUERIES[query], {"tenant": token.tenant, "token_hash": token.hash}
            ).fetchone()
