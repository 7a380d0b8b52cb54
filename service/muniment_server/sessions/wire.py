"""Sessions in the contract."""

from __future__ import annotations

from uuid import UUID

from muniment.v1 import session_pb2
from muniment_server.domain.classification import Label
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.ids import SessionId
from muniment_server.domain.session import Session
from muniment_server.items.wire import integrity_to_proto, level_to_proto, time_to_proto


def session_id_from_proto(text: str) -> SessionId:
    """A session id, which a host must give. Validation has checked its form."""
    if not text:
        raise InvalidArgument(FieldViolation("session_id", "is required"))
    return SessionId(UUID(text))


def session_to_proto(session: Session) -> session_pb2.Session:
    """A session."""
    return session_pb2.Session(
        session_id=str(session.session_id),
        agent_id=session.agent_id,
        conversation_id=session.conversation_id,
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
