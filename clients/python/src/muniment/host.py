"""The client of a host: agents, sessions, taint, sharing of blocks, releases, audit log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from muniment import _convert
from muniment._blocks import SharedBlocks
from muniment._calls import Calls
from muniment._conversation import Conversation
from muniment._listing import Listing
from muniment._releases import Releases
from muniment.session import SessionClient
from muniment.v1 import agent_service_pb2, audit_service_pb2, session_service_pb2
from muniment.v1.agent_service_pb2_grpc import AgentServiceStub
from muniment.v1.audit_service_pb2_grpc import AuditServiceStub
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment.values import (
    Agent,
    AgentLimits,
    AuditCheckpoint,
    AuditEvent,
    Classification,
    Integrity,
    ItemKind,
    MemorySettings,
    Session,
    SkippedAgents,
)

AnySession = SessionClient | Session | str


class HostClient(SharedBlocks, Releases):
    """The trusted runtime around a model. Safe to use from several threads.

    As a context manager, it closes the connection at the end. Session clients that share the connection stop working;
    on the server, the sessions stay open until they are closed or expire.

    A parameter *session* is a session's client, value or id. Every method takes a *timeout* in seconds, for all its
    attempts; None means the client's default.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._agents = AgentServiceStub(calls.channel)
        self._audit = AuditServiceStub(calls.channel)
        self._sessions = SessionServiceStub(calls.channel)

    def create_agent(
        self,
        agent_id: str | None = None,
        *,
        display_name: str = "",
        language: str = "",
        ceiling: Classification | None = None,
        known_from: Classification | None = None,
        memory_settings: MemorySettings | None = None,
        limits: AgentLimits | None = None,
        initial_blocks: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Agent:
        """Create an agent. Without *agent_id*, the server generates one. AgentExists: the id is already used.

        *language* is a BCP 47 tag. *ceiling* is the highest level that its conversations may reach, for good; None
        means that of the key, and CeilingExceeded that it is above that. Keys with a ceiling from *known_from* on may
        have conversations with it, up to their own ceiling; None means *ceiling*. QuotaExceeded: the operator allows
        the tenant no more. *initial_blocks* are up to 64 PUBLIC blocks, content by label. None
        means three empty ones: `personality`, `relationships`, `current_state`.
        """
        request = _convert.message(
            agent_service_pb2.CreateAgentRequest,
            agent_id=agent_id or "",
            display_name=display_name,
            language=language,
            ceiling=None if ceiling is None else _convert.level_to_proto(ceiling),
            known_from=None if known_from is None else _convert.level_to_proto(known_from),
            memory_settings=_convert.settings_to_proto(memory_settings),
            limits=_convert.limits_to_proto(limits),
            initial_blocks=_convert.initial_blocks_to_proto(initial_blocks),
        )
        return _convert.agent(self._calls(self._agents.CreateAgent, request, timeout).agent)

    def get_agent(self, agent_id: str, *, timeout: float | None = None) -> Agent:
        """One agent, with what it stores. AgentNotFound: the tenant has none with that id."""
        request = _convert.message(agent_service_pb2.GetAgentRequest, agent_id=agent_id)
        response = self._calls(self._agents.GetAgent, request, timeout)
        return _convert.agent(response.agent, response.storage)

    def list_agents(self, *, page_size: int = 0, timeout: float | None = None) -> Listing[Agent]:
        """The tenant's agents, by id; pages are fetched as needed, each within *timeout*."""

        def fetch(token: str) -> agent_service_pb2.ListAgentsResponse:
            request = _convert.message(agent_service_pb2.ListAgentsRequest, page_size=page_size, page_token=token)
            return self._calls(self._agents.ListAgents, request, timeout)

        return Listing(fetch, lambda page: map(_convert.agent, page.agents))

    def update_agent(
        self,
        agent_id: str,
        *,
        display_name: str | None = None,
        language: str | None = None,
        known_from: Classification | None = None,
        memory_settings: MemorySettings | None = None,
        limits: AgentLimits | None = None,
        timeout: float | None = None,
    ) -> Agent:
        """Change the given settings; keep the others. AgentAboveCeiling: the key does not reach the agent's ceiling."""
        request = _convert.message(
            agent_service_pb2.UpdateAgentRequest,
            agent_id=agent_id,
            display_name=display_name,
            language=language,
            known_from=None if known_from is None else _convert.level_to_proto(known_from),
            memory_settings=_convert.settings_to_proto(memory_settings),
            limits=_convert.limits_to_proto(limits),
        )
        return _convert.agent(self._calls(self._agents.UpdateAgent, request, timeout).agent)

    def delete_agent(self, agent_id: str, *, timeout: float | None = None) -> None:
        """Erase an agent with its items, revisions, sessions, and the sharing of its blocks. Audit events stay."""
        request = _convert.message(agent_service_pb2.DeleteAgentRequest, agent_id=agent_id)
        self._calls(self._agents.DeleteAgent, request, timeout)

    def erase_items(
        self,
        agent_id: str,
        kind: ItemKind,
        *,
        name: str | None = None,
        tag: str | None = None,
        item_id: str | None = None,
        revision: int = 0,
        timeout: float | None = None,
    ) -> None:
        """Erase items of one kind for good, with all their revisions, at every level.

        Give exactly one of *name*, the key of a memory, the id of a note or passage or the label of a block; *tag*,
        which any revision may have had; and *item_id*, as audit events name it, with the one *revision* to erase. The
        call succeeds whether or not there is anything to erase.
        """
        request = _convert.message(
            agent_service_pb2.EraseItemsRequest,
            agent_id=agent_id,
            kind=_convert.kind_to_proto(kind),
            name=name or "",
            tag=tag or "",
            item_id=item_id or "",
            revision=revision,
        )
        self._calls(self._agents.EraseItems, request, timeout)

    def erase_of_every_agent(self, tag: str, *, timeout: float | None = None) -> SkippedAgents:
        """Erase for good what has *tag*, or had in any revision, of every agent: such as all that is about a person.

        Memories and passages have tags. Use a key that reaches the ceiling of every agent: the answer says which agents
        were left out, but not those that the key does not know.
        """
        response = agent_service_pb2.EraseItemsResponse()
        for kind in (ItemKind.MEMORY, ItemKind.PASSAGE):
            request = _convert.message(
                agent_service_pb2.EraseItemsRequest, every_agent=True, kind=_convert.kind_to_proto(kind), tag=tag
            )
            response = self._calls(self._agents.EraseItems, request, timeout)
        return SkippedAgents(tuple(response.skipped_agent_ids), response.skipped_count)

    def undelete_item(
        self,
        agent_id: str,
        kind: ItemKind,
        name: str,
        classification: Classification,
        *,
        integrity: Integrity = Integrity.UNTRUSTED,
        timeout: float | None = None,
    ) -> None:
        """Undelete an item: the one that was deleted last under *name*, with the label with which it was deleted.

        The name is the key of a memory, the id of a note or passage, or the label of a block. Raises ItemExists if
        an item of this name is live at the level, and NotFound if there is none to bring back.
        """
        request = _convert.message(
            agent_service_pb2.UndeleteItemRequest,
            agent_id=agent_id,
            kind=_convert.kind_to_proto(kind),
            name=name,
            classification=_convert.level_to_proto(classification),
            integrity=_convert.integrity_to_proto(integrity),
        )
        self._calls(self._agents.UndeleteItem, request, timeout)

    def open_session(
        self,
        agent_id: str,
        taint: Classification | None = None,
        *,
        integrity: Integrity = Integrity.UNTRUSTED,
        conversation_id: str | None = None,
        ttl: timedelta | None = None,
        read_only: bool = False,
        timeout: float | None = None,
    ) -> SessionClient:
        """Open a session at the level of what its conversation has seen so far.

        Without *taint*, it is the level that the conversation has; a new one begins at PUBLIC. *integrity* is TRUSTED
        if the conversation has seen nothing but what the host vouches for; UNTRUSTED taints a trusted conversation.
        Without *conversation_id*, it is a new conversation. *ttl* is 1 second to 30 days; None means 24 hours. With
        *read_only*, it stores and deletes nothing: SessionReadOnly.
        ConversationTainted: the conversation has seen more, up to `error.taint`, or it is not trusted. CeilingExceeded,
        AgentCeilingExceeded, ConversationCeilingExceeded: the key, the agent or the conversation may not reach *taint*.
        """
        request = _convert.message(
            session_service_pb2.OpenSessionRequest,
            agent_id=agent_id,
            taint=_convert.taint_to_proto(taint),
            integrity=_convert.integrity_to_proto(integrity),
            conversation_id=conversation_id or "",
            ttl=_convert.duration_to_proto(ttl),
            read_only=read_only,
        )
        return self._opened(self._calls(self._sessions.OpenSession, request, timeout))

    def conversation(
        self,
        agent_id: str,
        conversation_id: str | None = None,
        taint: Classification | None = None,
        ttl: timedelta | None = None,
        *,
        integrity: Integrity = Integrity.UNTRUSTED,
        read_only: bool = False,
        timeout: float | None = None,
    ) -> Conversation:
        """Open a session as `open_session` does, and renew it before it expires, for as long as it is used."""
        since = time.monotonic()
        opened = self.open_session(
            agent_id,
            taint,
            integrity=integrity,
            conversation_id=conversation_id,
            ttl=ttl,
            read_only=read_only,
            timeout=timeout,
        )
        return Conversation(self, opened, since=since)

    def renew_session(
        self, session: AnySession, ttl: timedelta | None = None, *, timeout: float | None = None
    ) -> Session:
        """Have a session expire after *ttl* from now: 1 second to 30 days; None means 24 hours. Its token stays.

        It may have expired already. SessionNotFound: it was closed or reset, or there is none.
        """
        request = _convert.message(
            session_service_pb2.RenewSessionRequest, session_id=_id_of(session), ttl=_convert.duration_to_proto(ttl)
        )
        return _convert.session(self._calls(self._sessions.RenewSession, request, timeout).session)

    def get_session(self, session: AnySession, *, timeout: float | None = None) -> Session:
        """One session of an agent up to the key's ceiling, including closed ones."""
        request = _convert.message(session_service_pb2.GetSessionRequest, session_id=_id_of(session))
        return _convert.session(self._calls(self._sessions.GetSession, request, timeout).session)

    def list_sessions(
        self, agent_id: str, *, include_closed: bool = False, page_size: int = 0, timeout: float | None = None
    ) -> Listing[Session]:
        """The sessions of an agent, newest first; pages are fetched as needed."""

        def fetch(token: str) -> session_service_pb2.ListSessionsResponse:
            request = _convert.message(
                session_service_pb2.ListSessionsRequest,
                agent_id=agent_id,
                include_closed=include_closed,
                page_size=page_size,
                page_token=token,
            )
            return self._calls(self._sessions.ListSessions, request, timeout)

        return Listing(fetch, lambda page: map(_convert.session, page.sessions))

    def raise_taint(
        self,
        session: AnySession,
        taint: Classification,
        reason: str = "",
        *,
        integrity: Integrity = Integrity.UNTRUSTED,
        timeout: float | None = None,
    ) -> Session:
        """Raise the taint of the session's conversation, and so of all its sessions.

        Show the model more sensitive information only after this has returned. The conversation is no longer trusted
        then; with TRUSTED it stays what it is. *reason* is for the audit: up to 200 code points, never content.
        SessionNotFound: the session is not open.
        """
        if isinstance(session, Conversation):
            session.keep_open(timeout=timeout)
        request = _convert.message(
            session_service_pb2.RaiseTaintRequest,
            session_id=_id_of(session),
            taint=_convert.level_to_proto(taint),
            integrity=_convert.integrity_to_proto(integrity),
            reason=reason,
        )
        raised = _convert.session(self._calls(self._sessions.RaiseTaint, request, timeout).session)
        if isinstance(session, Conversation):
            session._session = raised
        return raised

    def reset_session(
        self,
        session: AnySession,
        reason: str = "",
        *,
        integrity: Integrity = Integrity.UNTRUSTED,
        timeout: float | None = None,
    ) -> SessionClient:
        """Restart the conversation: close all its sessions, and open one at PUBLIC and of *integrity*.

        With this call, the host states that it has cleared the model's context. What it returns is a conversation if
        *session* is one, which ends: whoever still uses it has the old context.
        """
        if isinstance(session, Conversation):
            session.keep_open(timeout=timeout)
        since = time.monotonic()
        request = _convert.message(
            session_service_pb2.ResetSessionRequest,
            session_id=_id_of(session),
            reason=reason,
            integrity=_convert.integrity_to_proto(integrity),
        )
        opened = self._opened(self._calls(self._sessions.ResetSession, request, timeout))
        if isinstance(session, Conversation):
            return Conversation(self, opened, since=since)
        return opened

    def close_session(self, session: AnySession, *, timeout: float | None = None) -> None:
        """Close a session. Its token is invalid from then on."""
        request = _convert.message(session_service_pb2.CloseSessionRequest, session_id=_id_of(session))
        self._calls(self._sessions.CloseSession, request, timeout)

    def list_audit_events(
        self,
        *,
        agent_id: str | None = None,
        session: AnySession | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Listing[AuditEvent]:
        """The audit log, newest first, with `start_time <= time < end_time`."""

        def fetch(token: str) -> audit_service_pb2.ListAuditEventsResponse:
            request = _convert.message(
                audit_service_pb2.ListAuditEventsRequest,
                agent_id=agent_id or "",
                session_id=_id_of(session) if session is not None else "",
                start_time=_convert.time_to_proto(start_time),
                end_time=_convert.time_to_proto(end_time),
                page_size=page_size,
                page_token=token,
            )
            return self._calls(self._audit.ListAuditEvents, request, timeout)

        return Listing(fetch, lambda page: map(_convert.audit_event, page.audit_events))

    def get_audit_checkpoint(
        self,
        classification: Classification,
        *,
        integrity: Integrity = Integrity.UNTRUSTED,
        timeout: float | None = None,
    ) -> AuditCheckpoint:
        """The last seal of one chain of the audit log: keep it where whoever can change the database cannot write.

        Requires a key with the ceiling RESTRICTED.
        """
        request = _convert.message(
            audit_service_pb2.GetAuditCheckpointRequest,
            classification=_convert.level_to_proto(classification),
            integrity=_convert.integrity_to_proto(integrity),
        )
        return _convert.audit_checkpoint(self._calls(self._audit.GetAuditCheckpoint, request, timeout).checkpoint)

    def session(self, token: str) -> SessionClient:
        """A client for an existing token, over the same connection. Its `with` block leaves the session open."""
        return SessionClient(self._calls.with_credential(token))

    def close(self) -> None:
        """Close the connection. Sessions stay open on the server."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(
        self, response: session_service_pb2.OpenSessionResponse | session_service_pb2.ResetSessionResponse
    ) -> SessionClient:
        return SessionClient(self._calls.with_credential(response.token), _convert.session(response.session))


def _id_of(session: AnySession) -> str:
    if isinstance(session, str):
        return session
    try:
        return session.session_id
    except AttributeError:
        raise TypeError(f"session must be an id, a Session or a SessionClient, not {type(session).__name__}") from None
