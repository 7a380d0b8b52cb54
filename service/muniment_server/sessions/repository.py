"""Sessions and the taint of their conversations, as a host manages them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import AgentNotFound, CeilingExceeded, ConversationTainted, SessionNotFound
from muniment_server.domain.records import Session
from muniment_server.domain.tokens import TokenKind
from muniment_server.monitor.host_scope import Control


class Sessions:
    """The sessions of the host's tenant, up to its ceiling."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def open(
        self, agent_id: str, *, taint: Classification, conversation_id: str, ttl: timedelta
    ) -> tuple[Session, str]:
        """Open a session; return it with its token. An empty *conversation_id* begins a new conversation.

        Raises CeilingExceeded, AgentNotFound or ConversationTainted.
        """
        self._check_ceiling(taint, agent_id=agent_id)
        token = self._mint()
        row = self._control.change(
            "open_session",
            agent_id=agent_id,
            taint=taint,
            conversation_id=conversation_id or str(self._control.ids.new_uuid()),
            session_id=self._control.ids.new_uuid(),
            token_hash=tokens.digest(token),
            ttl=ttl,
        )
        if row is None:
            raise AgentNotFound
        if row.session_id is None:
            raise ConversationTainted
        return session_of_row(row), token

    def get(self, session_id: UUID) -> Session:
        """One session, open or not. Raises SessionNotFound."""
        return _found(self._control.execute("get_session", session_id=session_id).fetchone())

    def list(
        self, agent_id: str, *, include_closed: bool, before: tuple[datetime, UUID], limit: int
    ) -> tuple[list[Session], bool]:
        """Up to *limit* sessions of an agent, newest first, those before *before*; and whether there are more.

        Raises AgentNotFound.
        """
        rows = self._control.execute(
            "list_sessions",
            agent_id=agent_id,
            include_closed=include_closed,
            before_time=before[0],
            before_id=before[1],
            limit=limit + 1,
        ).fetchall()
        if not rows:
            raise AgentNotFound
        return [session_of_row(row) for row in rows[:limit] if row.session_id is not None], len(rows) > limit

    def raise_taint(self, session_id: UUID, *, taint: Classification, reason: str) -> Session:
        """Raise the conversation of an open session. Raises CeilingExceeded or SessionNotFound."""
        self._check_ceiling(taint, session_id=session_id)
        return _found(self._control.change("raise_taint", session_id=session_id, taint=taint, reason=reason or None))

    def reset(self, session_id: UUID, *, reason: str) -> tuple[Session, str]:
        """Close all sessions of the conversation, set it to PUBLIC, open a new one. Raises SessionNotFound.

        The lock is a statement of its own: one that waits does not see the sessions opened meanwhile.
        """
        token = self._mint()
        connection = self._control.connection
        with connection.pipeline():
            connection.execute("BEGIN")
            self._control.execute("lock_session", session_id=session_id)
            reset = self._control.execute(
                "reset_session",
                session_id=session_id,
                new_session_id=self._control.ids.new_uuid(),
                token_hash=tokens.digest(token),
                change_id=self._control.ids.new_uuid(),
                open_change_id=self._control.ids.new_uuid(),
                reason=reason or None,
            )
            connection.execute("COMMIT")
        return _found(reset.fetchone()), token

    def close(self, session_id: UUID) -> None:
        """Close an open session. Raises SessionNotFound."""
        if self._control.change("close_session", session_id=session_id) is None:
            raise SessionNotFound

    def _check_ceiling(
        self, taint: Classification, *, agent_id: str | None = None, session_id: UUID | None = None
    ) -> None:
        if not taint.can_flow_to(self._control.host.ceiling):
            self._control.refuse("CEILING_EXCEEDED", level=taint, agent_id=agent_id, session_id=session_id)
            raise CeilingExceeded

    def _mint(self) -> str:
        return tokens.mint(TokenKind.SESSION, tenant=self._control.host.tenant, secret=self._control.ids.new_secret())


def _found(row: Any) -> Session:
    if row is None:
        raise SessionNotFound
    return session_of_row(row)


def session_of_row(row: Any) -> Session:
    """The session in a row of any of the queries on sessions."""
    return Session(
        session_id=row.session_id,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
        taint=Classification(row.taint),
        create_time=row.create_time,
        expire_time=row.expire_time,
        close_time=row.close_time,
    )
