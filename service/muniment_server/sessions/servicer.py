"""SessionService."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from muniment.v1 import session_service_pb2 as pb
from muniment.v1 import session_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.classification import Classification, Integrity
from muniment_server.domain.errors import ConversationTainted, SessionNotFound
from muniment_server.domain.principals import SessionIdentity
from muniment_server.domain.session import DEFAULT_TTL, Session
from muniment_server.items import paging
from muniment_server.items.wire import duration_from_proto
from muniment_server.monitor.call import CallContext
from muniment_server.sessions import repository, wire


class SessionServicer(session_service_pb2_grpc.SessionServiceServicer):
    """Sessions and taint: for hosts, and for each session itself."""

    def OpenSession(self, request: pb.OpenSessionRequest, context: CallContext) -> pb.OpenSessionResponse:
        ttl = _ttl_of(request)
        with context.host_scope() as scope:
            try:
                session, token = repository.open_session(
                    scope,
                    request.agent_id,
                    taint=Classification(request.taint) if request.taint else None,
                    integrity=Integrity(request.integrity),
                    conversation_id=request.conversation_id,
                    mark=wire.mark_of(context.principal),
                    ttl=ttl,
                    read_only=request.read_only,
                )
            except ConversationTainted as error:
                error.detail = wire.tainted_to_proto(error.taint)
                raise
        return pb.OpenSessionResponse(session=wire.session_to_proto(session, context.principal), token=token)

    def GetSession(self, request: pb.GetSessionRequest, context: CallContext) -> pb.GetSessionResponse:
        return pb.GetSessionResponse(session=wire.session_to_proto(self._get(request, context), context.principal))

    def ListSessions(self, request: pb.ListSessionsRequest, context: CallContext) -> pb.ListSessionsResponse:
        pager = context.pager(request.agent_id, request.include_closed)
        with context.host_scope() as scope:
            sessions, more = repository.list_sessions(
                scope,
                request.agent_id,
                include_closed=request.include_closed,
                before=paging.before(pager.last(request.page_token)),
                limit=paging.page_size(request.page_size),
            )
        return pb.ListSessionsResponse(
            sessions=[wire.session_to_proto(session, context.principal) for session in sessions],
            next_page_token=pager.token(*wire.position_of(sessions[-1])) if more else "",
        )

    def RenewSession(self, request: pb.RenewSessionRequest, context: CallContext) -> pb.RenewSessionResponse:
        with context.host_scope() as scope:
            session = repository.renew(scope, wire.session_id_from_proto(request.session_id), ttl=_ttl_of(request))
        return pb.RenewSessionResponse(session=wire.session_to_proto(session, context.principal))

    def RaiseTaint(self, request: pb.RaiseTaintRequest, context: CallContext) -> pb.RaiseTaintResponse:
        reason = text.plain(request.reason, field="reason")
        with context.host_scope() as scope:
            session = repository.raise_taint(
                scope,
                wire.session_id_from_proto(request.session_id),
                taint=Classification(request.taint),
                integrity=Integrity(request.integrity),
                reason=reason,
            )
        return pb.RaiseTaintResponse(session=wire.session_to_proto(session, context.principal))

    def ResetSession(self, request: pb.ResetSessionRequest, context: CallContext) -> pb.ResetSessionResponse:
        reason = text.plain(request.reason, field="reason")
        with context.host_scope() as scope:
            session, token = repository.reset(
                scope,
                wire.session_id_from_proto(request.session_id),
                integrity=Integrity(request.integrity),
                reason=reason,
            )
        return pb.ResetSessionResponse(session=wire.session_to_proto(session, context.principal), token=token)

    def CloseSession(self, request: pb.CloseSessionRequest, context: CallContext) -> pb.CloseSessionResponse:
        if isinstance(context.principal, SessionIdentity):
            _check_own(request.session_id, context.principal)
            context.close_session()
        else:
            session_id = wire.session_id_from_proto(request.session_id)
            with context.host_scope() as scope:
                repository.close(scope, session_id)
        return pb.CloseSessionResponse()

    def _get(self, request: pb.GetSessionRequest, context: CallContext) -> Session:
        if isinstance(context.principal, SessionIdentity):
            _check_own(request.session_id, context.principal)
            with context.session_scope() as own:
                return own.session()
        session_id = wire.session_id_from_proto(request.session_id)
        with context.host_scope() as scope:
            return repository.get(scope, session_id)


def _ttl_of(request: pb.OpenSessionRequest | pb.RenewSessionRequest) -> timedelta:
    return duration_from_proto(request.ttl, field="ttl") if request.HasField("ttl") else DEFAULT_TTL


def _check_own(asked: str, session: SessionIdentity) -> None:
    """A session may name only itself."""
    if asked and UUID(asked) != session.session_id:
        raise SessionNotFound
