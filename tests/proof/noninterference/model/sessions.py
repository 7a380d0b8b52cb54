"""Sessions and their taint, as they must be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from google.protobuf.message import Message

from muniment.v1 import session_pb2
from muniment.v1 import session_service_pb2 as pb
from tests.proof.noninterference.model.ground import Ground
from tests.proof.noninterference.values import (
    LATER,
    Agent,
    Refused,
    Session,
    flows,
    integrity_of,
    joined,
    label_from,
    level_of,
    page_size,
    stamp,
)


class Sessions(Ground):
    """SessionService."""

    def _OpenSession(self, tenant: str, ceiling: int, request: pb.OpenSessionRequest) -> Message:
        if request.taint > ceiling:
            raise Refused("CEILING_EXCEEDED")
        agent = self._agent(tenant, ceiling, request.agent_id)
        if request.taint > agent.shown.ceiling:
            raise Refused("AGENT_CEILING_EXCEEDED")
        own = self.ceiling_of(agent, ceiling, request.conversation_id)
        if request.taint > own:
            raise Refused("CONVERSATION_CEILING_EXCEEDED")
        conversation = agent.conversations.get((request.conversation_id, own))
        asked = label_from(request.taint or (level_of(conversation.taint) if conversation else 1), request.integrity)
        if conversation and not flows(conversation.taint, asked):
            known = session_pb2.ConversationTainted(
                taint=level_of(conversation.taint), integrity=integrity_of(conversation.taint)
            )
            raise Refused("CONVERSATION_TAINTED", known)
        ttl = request.ttl.ToTimedelta() if request.HasField("ttl") else timedelta(hours=24)
        session = Session(
            tenant, agent, request.conversation_id or LATER, own, self.now, self.now + ttl, request.read_only
        )
        shown = self._session(LATER, session, asked)
        return pb.OpenSessionResponse(session=shown, token=LATER)

    def _GetSession(self, of: Any, limit: int, request: pb.GetSessionRequest) -> Message:
        session_id = self._named(of, request)
        if isinstance(of, str):
            session = self.sessions.get(session_id)
            if session is None or session.tenant != of or not self.is_known(session, limit):
                raise Refused("SESSION_NOT_FOUND")
        shown = self._session(session_id, self.sessions[session_id])
        if not isinstance(of, str):
            shown.ClearField("ceiling")
        return pb.GetSessionResponse(session=shown)

    def _ListSessions(self, tenant: str, ceiling: int, request: pb.ListSessionsRequest) -> Message:
        filters = (request.agent_id, request.include_closed)
        last = self._last("ListSessions", request.page_token, filters, 0)
        agent = self._agent(tenant, ceiling, request.agent_id)
        wanted = sorted(
            (
                (session.created, session_id)
                for session_id, session in self.sessions.items()
                if session.agent is agent and session.ceiling <= ceiling
                if request.include_closed or self.open_level(session_id) is not None
                if last is None or (session.created, session_id) < last
            ),
            reverse=True,
        )
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, filters, 0, page and page[-1])
        shown = [self._session(session_id, self.sessions[session_id]) for _, session_id in page]
        return pb.ListSessionsResponse(sessions=shown, next_page_token=more)

    def _RenewSession(self, tenant: str, ceiling: int, request: pb.RenewSessionRequest) -> Message:
        session = self._unclosed(tenant, ceiling, request.session_id)
        session.renewed = self.now
        session.expires = self.now + (request.ttl.ToTimedelta() if request.HasField("ttl") else timedelta(hours=24))
        return pb.RenewSessionResponse(session=self._session(request.session_id, session))

    def _RaiseTaint(self, tenant: str, ceiling: int, request: pb.RaiseTaintRequest) -> Message:
        if request.taint > ceiling:
            raise Refused("CEILING_EXCEEDED")
        session = self._open(tenant, ceiling, request.session_id)
        if request.taint > session.agent.shown.ceiling:
            raise Refused("AGENT_CEILING_EXCEEDED")
        if request.taint > session.ceiling:
            raise Refused("CONVERSATION_CEILING_EXCEEDED")
        raised = label_from(request.taint, request.integrity)
        session.conversation.taint = joined(session.conversation.taint, raised)
        return pb.RaiseTaintResponse(session=self._session(request.session_id, session))

    def _ResetSession(self, tenant: str, ceiling: int, request: pb.ResetSessionRequest) -> Message:
        old = self._open(tenant, ceiling, request.session_id)
        for session in self.sessions.values():
            if session.conversation is old.conversation and session.closed is None:
                session.closed = self.now + timedelta(microseconds=session.expires <= self.now)
        old.conversation.taint = label_from(1, request.integrity)
        expires = self.now + (old.expires - (old.renewed or old.created))
        new = Session(tenant, old.agent, old.conversation_id, old.ceiling, self.now, expires, old.read_only)
        return pb.ResetSessionResponse(session=self._session(LATER, new), token=LATER)

    def _CloseSession(self, of: Any, limit: int, request: pb.CloseSessionRequest) -> Message:
        session_id = self._named(of, request)
        if isinstance(of, str):
            self._unclosed(of, limit, session_id)
        session = self.sessions[session_id]
        session.closed = self.now + timedelta(microseconds=session.expires <= self.now)
        return pb.CloseSessionResponse()

    def _named(self, of: Any, request: Any) -> str:
        """Which session is meant. A session may name none but itself, a host must name one."""
        if isinstance(of, str):
            if not request.session_id:
                raise Refused("FIELD_INVALID")
            return str(request.session_id)
        own = self.tokens[self._token]
        if request.session_id not in ("", own):
            raise Refused("SESSION_NOT_FOUND")
        return own

    def _open(self, tenant: str, ceiling: int, session_id: str) -> Session:
        session = self.sessions.get(session_id)
        if session is None or self.open_level(session_id) is None or session.tenant != tenant:
            raise Refused("SESSION_NOT_FOUND")
        if not self.is_known(session, ceiling):
            raise Refused("SESSION_NOT_FOUND")
        return session

    def _unclosed(self, tenant: str, ceiling: int, session_id: str) -> Session:
        """A session that is open or has only expired."""
        session = self.sessions.get(session_id)
        if session is None or self.unclosed_level(session_id) is None or session.tenant != tenant:
            raise Refused("SESSION_NOT_FOUND")
        if not self.is_known(session, ceiling):
            raise Refused("SESSION_NOT_FOUND")
        return session

    @staticmethod
    def is_known(session: Session, ceiling: int) -> bool:
        """Whether a session exists for a host key of its tenant."""
        return session.ceiling <= ceiling and session.agent.shown.known_from <= ceiling

    @staticmethod
    def ceiling_of(agent: Agent, key: int, name: str) -> int:
        """The ceiling of the conversation that a key finds by its name, or begins."""
        found = [ceiling for known, ceiling in agent.conversations if known == name and ceiling <= key]
        return max(found, default=min(agent.shown.ceiling, key))

    @staticmethod
    def _session(session_id: str, session: Session, taint: int = 0) -> session_pb2.Session:
        return session_pb2.Session(
            session_id=session_id,
            agent_id=session.agent.shown.agent_id,
            conversation_id=session.conversation_id,
            taint=level_of(taint or session.conversation.taint),
            integrity=integrity_of(taint or session.conversation.taint),
            create_time=stamp(session.created),
            expire_time=stamp(session.expires),
            close_time=stamp(session.closed),
            read_only=session.read_only,
            ceiling=session.ceiling,  # type: ignore[arg-type]  # a number of the enum
        )
