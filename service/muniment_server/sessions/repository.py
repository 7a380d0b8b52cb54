"""Sessions and the taint of their conversations, as a host manages them, up to its ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.errors import (
    AgentCeilingExceeded,
    AgentNotFound,
    ConversationCeilingExceeded,
    ConversationTainted,
    SessionNotFound,
)
from muniment_server.domain.ids import SessionId
from muniment_server.domain.session import Session
from muniment_server.domain.tokens import TokenKind
from muniment_server.monitor.host_scope import HostScope


@dataclass(frozen=True, slots=True)
class _Row:
    """A session, or an agent without one."""

    session_id: SessionId | None
    agent_id: str
    conversation_id: str
    taint: Label | None
    create_time: datetime
    expire_time: datetime
    close_time: datetime | None
    ceiling: Classification
    read_only: bool


@dataclass(frozen=True, slots=True)
class _Opened(_Row):
    agent_ceiling: Classification


@dataclass(frozen=True, slots=True)
class _Raised(Session):
    ceiling: Classification
    read_only: bool
    agent_ceiling: Classification


@dataclass(frozen=True, slots=True)
class _Closed:
    session_id: SessionId


def open_session(
    scope: HostScope,
    agent_id: str,
    *,
    taint: Classification | None,
    integrity: Integrity,
    conversation_id: str,
    mark: str,
    ttl: timedelta,
    read_only: bool,
) -> tuple[Session, str]:
    """Open a session; return it with its token.

    Without a *taint*, the session has that of the conversation, or PUBLIC if it is new. UNTRUSTED taints the
    conversation; TRUSTED requires one that is trusted or new. An empty *conversation_id* begins a new conversation.
    *mark* stands before the id.

    Raises CeilingExceeded, IntegrityExceeded, AgentNotFound, AgentCeilingExceeded, ConversationCeilingExceeded or
    ConversationTainted, which carries the taint.
    """
    if taint is not None:
        scope.require_ceiling(taint, agent_id=agent_id)
    scope.require_integrity(integrity, agent_id=agent_id)
    token = _mint(scope)
    row = scope.change(
        "open_session",
        _Opened,
        agent_id=agent_id,
        taint=taint,
        trusted=integrity is Integrity.TRUSTED,
        conversation_id=f"{mark}{conversation_id or scope.new_uuid()}",
        session_id=scope.new_uuid(),
        token_hash=tokens.digest(token),
        ttl=ttl,
        read_only=read_only,
    )
    if row is None:
        raise AgentNotFound
    if taint is not None:
        _require_ceilings(scope, taint, row.ceiling, row.agent_ceiling, agent_id=agent_id)
    if row.taint is None:  # another key has reset it to trusted, and this one may not taint it
        scope.raise_integrity_exceeded(agent_id=agent_id)
    session = _session(row)
    if session is None:
        raise ConversationTainted(row.taint)
    return session, token


def _require_ceilings(
    scope: HostScope,
    taint: Classification,
    conversation_ceiling: Classification,
    agent_ceiling: Classification,
    *,
    agent_id: str | None = None,
    session_id: SessionId | None = None,
) -> None:
    """Refuse, with an audit row, a *taint* above a ceiling.

    Raises AgentCeilingExceeded or ConversationCeilingExceeded.
    """
    if not taint.can_flow_to(agent_ceiling):
        scope.record_refusal("AGENT_CEILING_EXCEEDED", agent_id=agent_id, session_id=session_id)
        raise AgentCeilingExceeded
    if not taint.can_flow_to(conversation_ceiling):
        scope.record_refusal("CONVERSATION_CEILING_EXCEEDED", agent_id=agent_id, session_id=session_id)
        raise ConversationCeilingExceeded


def get(scope: HostScope, session_id: SessionId) -> Session:
    """One session, open or not. Raises SessionNotFound."""
    return _found(scope.first("get_session", Session, session_id=session_id))


def list_sessions(
    scope: HostScope, agent_id: str, *, include_closed: bool, before: tuple[datetime, UUID], limit: int
) -> tuple[list[Session], bool]:
    """Up to *limit* sessions of an agent before *before*, newest first; and whether there are more.

    Raises AgentNotFound.
    """
    rows = scope.rows(
        "list_sessions",
        _Row,
        agent_id=agent_id,
        include_closed=include_closed,
        before_time=before[0],
        before_id=before[1],
        limit=limit + 1,
    )
    if not rows:
        raise AgentNotFound
    page = [session for row in rows[:limit] if row is not None and (session := _session(row)) is not None]
    return page, len(rows) > limit


def renew(scope: HostScope, session_id: SessionId, *, ttl: timedelta) -> Session:
    """Prolong a session, which may have expired, to *ttl* from now. Raises SessionNotFound."""
    return _found(scope.change("renew_session", Session, session_id=session_id, ttl=ttl))


def raise_taint(
    scope: HostScope, session_id: SessionId, *, taint: Classification, integrity: Integrity, reason: str
) -> Session:
    """Raise the conversation of an open session to *taint*, and to UNTRUSTED unless *integrity* is TRUSTED.

    Raises CeilingExceeded, IntegrityExceeded, SessionNotFound, AgentCeilingExceeded or ConversationCeilingExceeded.
    """
    scope.require_ceiling(taint, session_id=session_id)
    scope.require_integrity(integrity, session_id=session_id)
    raised = scope.change(
        "raise_taint",
        _Raised,
        session_id=session_id,
        taint=taint,
        trusted=integrity is Integrity.TRUSTED,
        reason=reason or None,
    )
    if raised is None:
        raise SessionNotFound
    _require_ceilings(scope, taint, raised.ceiling, raised.agent_ceiling, session_id=session_id)
    return raised


def reset(scope: HostScope, session_id: SessionId, *, integrity: Integrity, reason: str) -> tuple[Session, str]:
    """Close all sessions of the conversation, set it to PUBLIC and *integrity*, and open a new session.

    Raises IntegrityExceeded or SessionNotFound. The lock is a statement of its own: a statement that waits does not see
    the sessions opened meanwhile.
    """
    scope.require_integrity(integrity, session_id=session_id)
    token = _mint(scope)
    with scope.transaction():
        scope.execute("lock_session", session_id=session_id)
        opened = scope.send(
            "reset_session",
            Session,
            session_id=session_id,
            new_session_id=scope.new_uuid(),
            trusted=integrity is Integrity.TRUSTED,
            token_hash=tokens.digest(token),
            change_id=scope.new_uuid(),
            open_change_id=scope.new_uuid(),
            reason=reason or None,
        )
    return _found(opened()), token


def close(scope: HostScope, session_id: SessionId) -> None:
    """Close a session, which may have expired. Raises SessionNotFound."""
    if scope.change("close_session", _Closed, session_id=session_id) is None:
        raise SessionNotFound


def _mint(scope: HostScope) -> str:
    return tokens.mint(TokenKind.SESSION, tenant=scope.tenant, secret=scope.new_secret())


def _found(session: Session | None) -> Session:
    if session is None:
        raise SessionNotFound
    return session


def _session(row: _Row) -> Session | None:
    if row.session_id is None or row.taint is None:
        return None
    return Session(
        session_id=row.session_id,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
        taint=row.taint,
        create_time=row.create_time,
        expire_time=row.expire_time,
        close_time=row.close_time,
        ceiling=row.ceiling,
        read_only=row.read_only,
    )
