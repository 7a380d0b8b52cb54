"""Sessions in the contract."""

from __future__ import annotations

from uuid import UUID

from muniment.v1 import session_pb2
from muniment_server.domain.classification import Integrity, Label
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.ids import SessionId
from muniment_server.domain.principals import HostIdentity, SessionIdentity
from muniment_server.domain.session import Session
from muniment_server.items.wire import integrity_to_proto, level_to_proto, time_to_proto


def session_id_from_proto(text: str) -> SessionId:
    """A session id, which a host must give. Validation has checked its form."""
    if not text:
        raise InvalidArgument(FieldViolation("session_id", "is required"))
    return SessionId(UUID(text))


_MARK = "~"
"""Stands before the ids of conversations that keys for untrusted sessions have begun. No caller can write it."""


def mark_of(host: HostIdentity | SessionIdentity) -> str:
    """What stands before the ids of conversations that a key begins.

    The ids of a key for untrusted sessions are apart from all others: it neither learns nor takes one of them.
    """
    return _MARK if isinstance(host, HostIdentity) and host.integrity is Integrity.UNTRUSTED else ""


def session_to_proto(session: Session, caller: HostIdentity | SessionIdentity) -> session_pb2.Session:
    """A session. The mark of its conversation is shown only to keys that may open trusted sessions."""
    shows_mark = isinstance(caller, HostIdentity) and caller.integrity is Integrity.TRUSTED
    return session_pb2.Session(
        session_id=str(session.session_id),
        agent_id=session.agent_id,
        conversation_id=session.conversation_id if shows_mark else session.conversation_id.removeprefix(_MARK),
        taint=level_to_proto(session.taint.level),
        integrity=integrity_to_proto(session.taint.integrity),
        create_time=time_to_proto(session.create_time),
        expire_time=time_to_proto(session.expire_time),
        close_time=time_to_proto(session.close_time),
        ceiling=level_to_proto(session.ceiling),
        read_only=session.read_only,
    )


def tainted_to_proto(label: Label) -> session_pb2.ConversationTainted:
    """How far a conversation is tainted."""
    return session_pb2.ConversationTainted(
        taint=level_to_proto(label.level), integrity=integrity_to_proto(label.integrity)
    )


def position_of(session: Session) -> tuple[str, str]:
    """What a page token names: the session after which the list continues."""
    return session.create_time.isoformat(), str(session.session_id)
