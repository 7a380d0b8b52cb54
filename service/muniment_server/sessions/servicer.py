"""SessionService."""

from __future__ import annotations

from uuid import UUID

from muniment.v1 import session_service_pb2 as pb
from muniment.v1 import session_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import FieldViolation, InvalidArgument, SessionNotFound
from muniment_server.domain.records import DEFAULT_TTL, Session, SessionIdentity
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store


class SessionServicer(session_service_pb2_grpc.SessionServiceServicer):
    """Sessions and taint: for hosts, and for a session as far as it is itself."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def OpenSession(self, request: pb.OpenSessionRequest, context: CallContext) -> pb.OpenSessionResponse:
        ttl = convert.duration_from_proto(request.ttl, field="ttl") if request.HasField("ttl") else DEFAULT_TTL
        with self._store.as_host(context.host, context.call) as view:
            session, token = view.sessions.open(
                request.agent_id,
                taint=Classification(request.taint),
                conversation_id=request.conversation_id,
                ttl=ttl,
            )
        return pb.OpenSessionResponse(session=convert.session_to_proto(session), token=token)

    def GetSession(self, request: pb.GetSessionRequest, context: CallContext) -> pb.GetSessionResponse:
        return pb.GetSessionResponse(session=convert.session_to_proto(self._get(request, context)))

    def ListSessions(self, request: pb.ListSessionsRequest, context: CallContext) -> pb.ListSessionsResponse:
        pager = context.pager(request.agent_id, request.include_closed)
        with self._store.as_host(context.host, context.call) as view:
            sessions, more = view.sessions.list(
                request.agent_id,
                include_closed=request.include_closed,
                before=paging.before(pager.last(request.page_token)),
                limit=paging.page_size(request.page_size),
            )
        return pb.ListSessionsResponse(
            sessions=map(convert.session_to_proto, sessions),
            next_page_token=pager.token(*_position(sessions[-1])) if more else "",
        )

    def RaiseTaint(self, request: pb.RaiseTaintRequest, context: CallContext) -> pb.RaiseTaintResponse:
        reason = text.plain(request.reason, field="reason")
        with self._store.as_host(context.host, context.call) as view:
            session = view.sessions.raise_taint(
                UUID(request.session_id), taint=Classification(request.taint), reason=reason
            )
        return pb.RaiseTaintResponse(session=convert.session_to_proto(session))

    def ResetSession(self, request: pb.ResetSessionRequest, context: CallContext) -> pb.ResetSessionResponse:
        reason = text.plain(request.reason, field="reason")
        with self._store.as_host(context.host, context.call) as view:
            session, token = view.sessions.reset(UUID(request.session_id), reason=reason)
        return pb.ResetSessionResponse(session=convert.session_to_proto(session), token=token)

    def CloseSession(self, request: pb.CloseSessionRequest, context: CallContext) -> pb.CloseSessionResponse:
        if isinstance(context.principal, SessionIdentity):
            _check_own(request.session_id, context.principal)
            self._store.close_own_session(context.principal, context.call)
        else:
            session_id = _named(request.session_id)
            with self._store.as_host(context.host, context.call) as view:
                view.sessions.close(session_id)
        return pb.CloseSessionResponse()

    def _get(self, request: pb.GetSessionRequest, context: CallContext) -> Session:
        if isinstance(context.principal, SessionIdentity):
            _check_own(request.session_id, context.principal)
            with self._store.as_session(context.principal, context.call) as own:
                return own.session()
        session_id = _named(request.session_id)
        with self._store.as_host(context.host, context.call) as view:
            return view.sessions.get(session_id)


def _check_own(asked: str, session: SessionIdentity) -> None:
    """A session may name no session but itself."""
    if asked and UUID(asked) != session.session_id:
        raise SessionNotFound


def _named(session_id: str) -> UUID:
    """A host has no session of its own: it must name one."""
    if not session_id:
        raise InvalidArgument(FieldViolation("session_id", "is required"))
    return UUID(session_id)


def _position(session: Session) -> tuple[str, str]:
    return session.create_time.isoformat(), str(session.session_id)
