"""What the service must answer, in pure Python: no SQL, no grants, no transport, no cache.

One model follows one world. `expect` says what an operation must be answered; `learn` holds the answer
against it, and takes from it what nobody can foretell: ids, tokens, etags. Etags need not be foretold to be
checked: equal versions have equal etags, others have others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from muniment.v1 import agent_pb2, agent_service_pb2, audit_service_pb2, memory_pb2, memory_service_pb2, session_pb2
from muniment.v1 import session_service_pb2 as sessions_pb
from tests.noninterference.values import (
    CODES,
    FOR_BOTH,
    FOR_SESSIONS,
    LATER,
    METHODS,
    Agent,
    Conversation,
    Disagreement,
    Found,
    Page,
    Refusal,
    Refused,
    Session,
    Untold,
    Version,
    agree,
    join,
    keeps_the_rule,
    key_of,
    memories_in,
    nfc,
    page_size,
    random_id,
    score,
    shown,
    stamp,
    stated,
    tags_of,
)
from tests.support.services import Outcome, reason_of


class Model:
    """One world as it must be. *pages* may be shared with another world's: tokens are worth the same in both."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self.now = datetime.min.replace(tzinfo=UTC)
        self.hosts: dict[str, tuple[str, int]] = {}
        self.agents: dict[tuple[str, str], Agent] = {}
        self.sessions: dict[str, Session] = {}
        self.tokens: dict[str, str] = {}
        self._pages = pages
        self._etags: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._operation = ""
        self._token = ""
        self._page: tuple[tuple[object, ...], Any] = ((), None)

    def level(self, token: str) -> int | None:
        """The taint of the open session that holds *token*."""
        return self.open_level(self.tokens.get(token, ""))

    def open_level(self, session_id: str) -> int | None:
        """The taint of an open session."""
        session = self.sessions.get(session_id)
        if session is None or session.closed or session.expires <= self.now:
            return None
        return session.conversation.taint

    def outlived(self, token: str, page_token: str) -> bool:
        """Whether the session of *token* was raised since it was given *page_token*."""
        level = self.level(token)
        return level is not None and page_token in self._pages and self._pages[page_token].taint != level

    def expect(self, operation: str, token: str, rpc: str, request: bytes) -> Any:
        """The answer that must come: a message, a Refusal, Found or Untold. Its effect has taken place."""
        self._operation, self._token = operation, token
        try:
            self._admit(token, rpc)
            return getattr(self, f"_{rpc}")(*self._caller(token, rpc), self._parse(rpc, request))
        except Refused as refused:
            return Refusal(str(refused))

    def learn(self, expected: Any, rpc: str, outcome: Outcome) -> None:
        """Hold *outcome* against what was expected. Raises Disagreement."""
        told = reason_of(outcome) or outcome.code.name
        wanted = expected.reason if isinstance(expected, Refusal) else "OK"
        code = CODES.get(wanted, wanted)
        if (outcome.code.name, told) != (code, wanted):
            raise Disagreement(f"{rpc}: {wanted} expected, told {outcome.code.name} {told}")
        if wanted == "OK":
            answer = GetMessageClass(METHODS[rpc].output_type).FromString(outcome.response)
            self._learn(expected, rpc, answer)

    # What comes before any method.

    def _admit(self, token: str, rpc: str) -> None:
        if token not in self.hosts and self.level(token) is None:
            raise Refused("CREDENTIAL_INVALID")
        if rpc not in METHODS:
            raise Refused("METHOD_UNKNOWN")
        if rpc not in FOR_BOTH and (rpc in FOR_SESSIONS) == (token in self.hosts):
            raise Refused("PRINCIPAL_NOT_ALLOWED")

    def _caller(self, token: str, rpc: str) -> Sequence[Any]:
        if token in self.hosts:
            return self.hosts[token]
        return self.sessions[self.tokens[token]], self.level(token)

    @staticmethod
    def _parse(rpc: str, request: bytes) -> Any:
        try:
            message: Any = GetMessageClass(METHODS[rpc].input_type).FromString(request)
        except DecodeError:
            raise Refused("FIELD_INVALID") from None
        if not all(keeps_the_rule(field.name, value) for field, value in stated(message)):
            raise Refused("FIELD_INVALID")
        return message

    # Memories. A session is asked at its taint.

    def _seen(self, session: Session, key: str, taint: int) -> dict[int, Version]:
        """The live versions at or below *taint*."""
        versions = session.agent.memories.get(key, {})
        return {at: one for at, one in versions.items() if at <= taint and self._lives(one)}

    def _lives(self, version: Version) -> bool:
        return version.expires is None or version.expires > self.now

    def _all_seen(self, session: Session, taint: int) -> dict[str, memory_pb2.Memory]:
        """The highest visible version of each key, by key."""
        seen = {key: self._seen(session, key, taint) for key in sorted(session.agent.memories)}
        return {key: shown(key, max(some), some[max(some)]) for key, some in seen.items() if some}

    def _SaveMemory(self, session: Session, taint: int, request: memory_service_pb2.SaveMemoryRequest) -> Message:
        key, tags = key_of(request.key), tags_of(request.tags)
        expires = request.expire_time.ToDatetime(tzinfo=UTC) if request.HasField("expire_time") else None
        seen = self._seen(session, key, taint)
        if request.etag and (not seen or seen[max(seen)].etag != self._etags.get(request.etag)):
            raise Refused("ETAG_STALE")
        if expires is not None and expires <= self.now:
            raise Refused("FIELD_INVALID")
        own = seen.get(taint)
        if own is None:
            own = Version(self._operation, 1, request.content, tags, self.now, self.now, expires)
            session.agent.memories.setdefault(key, {})[taint] = own
        elif (own.content, own.tags, own.expires) != (request.content, tags, expires):
            own.content, own.tags, own.expires = request.content, tags, expires
            own.revision, own.updated = own.revision + 1, self.now
        return memory_service_pb2.SaveMemoryResponse(memory=shown(key, taint, own))

    def _GetMemory(self, session: Session, taint: int, request: memory_service_pb2.GetMemoryRequest) -> Message:
        key = key_of(request.key)
        seen = self._seen(session, key, taint)
        if not seen:
            raise Refused("MEMORY_NOT_FOUND")
        return memory_service_pb2.GetMemoryResponse(memory=shown(key, max(seen), seen[max(seen)]))

    def _DeleteMemory(self, session: Session, taint: int, request: memory_service_pb2.DeleteMemoryRequest) -> Message:
        seen = self._seen(session, key_of(request.key), taint)
        if taint not in seen:
            raise Refused("WRITE_LEVEL_MISMATCH" if seen else "MEMORY_NOT_FOUND")
        if request.etag and seen[taint].etag != self._etags.get(request.etag):
            raise Refused("ETAG_STALE")
        del session.agent.memories[key_of(request.key)][taint]
        revealed: Any = max((at for at in seen if at < taint), default=0)
        return memory_service_pb2.DeleteMemoryResponse(revealed=revealed)

    def _ListMemories(self, session: Session, taint: int, request: memory_service_pb2.ListMemoriesRequest) -> Message:
        tag = nfc(request.tag).strip()
        after = self._last("ListMemories", request.page_token, (tag,), taint) or ""
        seen = self._all_seen(session, taint)
        wanted = [one for key, one in seen.items() if key > after and (not tag or tag in one.tags)]
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (tag,), taint, page and page[-1].key)
        return memory_service_pb2.ListMemoriesResponse(memories=page, next_page_token=more, classification=join(page))

    def _SearchMemories(self, session: Session, taint: int, request: memory_service_pb2.SearchMemoriesRequest) -> Found:
        if not request.query.replace("\0", " ").strip():
            raise Refused("FIELD_INVALID")
        asked = set(tags_of(request.tags))
        every = request.tag_match != 2
        seen = self._all_seen(session, taint)
        wanted = {
            key: one
            for key, one in seen.items()
            if not asked or (asked <= set(one.tags) if every else asked & set(one.tags))
        }
        scores = {key: score(request.query, f"{key} {one.content}") for key, one in wanted.items()}
        found = {key: score for key, score in scores.items() if score}
        return Found(found, wanted, min(request.max_results or 10, 100))

    # Sessions.

    def _OpenSession(self, tenant: str, ceiling: int, request: sessions_pb.OpenSessionRequest) -> Message:
        if request.taint > ceiling:
            raise Refused("CEILING_EXCEEDED")
        agent = self._agent(tenant, request.agent_id)
        conversation = agent.conversations.get(request.conversation_id)
        if conversation and conversation.taint > request.taint:
            raise Refused("CONVERSATION_TAINTED")
        ttl = request.ttl.ToTimedelta() if request.HasField("ttl") else timedelta(hours=24)
        session = Session(tenant, agent, request.conversation_id or LATER, self.now, self.now + ttl)
        shown = self._session(LATER, session, request.taint)
        return sessions_pb.OpenSessionResponse(session=shown, token=LATER)

    def _GetSession(self, of: Any, limit: int, request: sessions_pb.GetSessionRequest) -> Message:
        session_id = self._named(of, request)
        if isinstance(of, str):
            session = self.sessions.get(session_id)
            if session is None or session.tenant != of or session.conversation.taint > limit:
                raise Refused("SESSION_NOT_FOUND")
        return sessions_pb.GetSessionResponse(session=self._session(session_id, self.sessions[session_id]))

    def _ListSessions(self, tenant: str, ceiling: int, request: sessions_pb.ListSessionsRequest) -> Message:
        filters = (request.agent_id, request.include_closed)
        last = self._last("ListSessions", request.page_token, filters, 0)
        agent = self._agent(tenant, request.agent_id)
        wanted = sorted(
            (
                (session.created, session_id)
                for session_id, session in self.sessions.items()
                if session.agent is agent and session.conversation.taint <= ceiling
                if request.include_closed or self.open_level(session_id) is not None
                if last is None or (session.created, session_id) < last
            ),
            reverse=True,
        )
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, filters, 0, page and page[-1])
        shown = [self._session(session_id, self.sessions[session_id]) for _, session_id in page]
        return sessions_pb.ListSessionsResponse(sessions=shown, next_page_token=more)

    def _RaiseTaint(self, tenant: str, ceiling: int, request: sessions_pb.RaiseTaintRequest) -> Message:
        if request.taint > ceiling:
            raise Refused("CEILING_EXCEEDED")
        session = self._open(tenant, ceiling, request.session_id)
        session.conversation.taint = max(session.conversation.taint, request.taint)
        return sessions_pb.RaiseTaintResponse(session=self._session(request.session_id, session))

    def _ResetSession(self, tenant: str, ceiling: int, request: sessions_pb.ResetSessionRequest) -> Message:
        old = self._open(tenant, ceiling, request.session_id)
        for session in self.sessions.values():
            if session.conversation is old.conversation and session.closed is None:
                session.closed = self.now
        old.conversation.taint = 1
        new = Session(tenant, old.agent, old.conversation_id, self.now, self.now + (old.expires - old.created))
        return sessions_pb.ResetSessionResponse(session=self._session(LATER, new), token=LATER)

    def _CloseSession(self, of: Any, limit: int, request: sessions_pb.CloseSessionRequest) -> Message:
        session_id = self._named(of, request)
        if isinstance(of, str):
            self._open(of, limit, session_id)
        self.sessions[session_id].closed = self.now
        return sessions_pb.CloseSessionResponse()

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
        taint = self.open_level(session_id)
        if taint is None or taint > ceiling or self.sessions[session_id].tenant != tenant:
            raise Refused("SESSION_NOT_FOUND")
        return self.sessions[session_id]

    @staticmethod
    def _session(session_id: str, session: Session, taint: int = 0) -> session_pb2.Session:
        return session_pb2.Session(
            session_id=session_id,
            agent_id=session.agent.shown.agent_id,
            conversation_id=session.conversation_id,
            taint=taint or session.conversation.taint,  # type: ignore[arg-type]  # a number of the enum
            create_time=stamp(session.created),
            expire_time=stamp(session.expires),
            close_time=stamp(session.closed),
        )

    # Agents and the audit.

    def _agent(self, tenant: str, agent_id: str) -> Agent:
        if (tenant, agent_id) not in self.agents:
            raise Refused("AGENT_NOT_FOUND")
        return self.agents[tenant, agent_id]

    def _CreateAgent(self, tenant: str, _: int, request: agent_service_pb2.CreateAgentRequest) -> Message:
        if (tenant, request.agent_id) in self.agents:
            raise Refused("AGENT_EXISTS")
        settings = agent_pb2.MemorySettings(
            memory_enabled=True, user_profile_enabled=True, memory_char_limit=2200, user_char_limit=1375
        )
        settings.MergeFrom(request.memory_settings)
        return agent_service_pb2.CreateAgentResponse(
            agent=agent_pb2.Agent(
                agent_id=request.agent_id or LATER,
                display_name=request.display_name,
                language=request.language,
                memory_settings=settings,
                create_time=stamp(self.now),
                update_time=stamp(self.now),
            )
        )

    def _GetAgent(self, tenant: str, _: int, request: agent_service_pb2.GetAgentRequest) -> Message:
        return agent_service_pb2.GetAgentResponse(agent=self._agent(tenant, request.agent_id).shown)

    def _ListAgents(self, tenant: str, _: int, request: agent_service_pb2.ListAgentsRequest) -> Message:
        after = self._last("ListAgents", request.page_token, (), 0) or ""
        wanted = sorted(agent_id for of, agent_id in self.agents if of == tenant and agent_id > after)
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (), 0, page and page[-1])
        shown = [self.agents[tenant, agent_id].shown for agent_id in page]
        return agent_service_pb2.ListAgentsResponse(agents=shown, next_page_token=more)

    def _UpdateAgent(self, tenant: str, _: int, request: agent_service_pb2.UpdateAgentRequest) -> Message:
        shown = self._agent(tenant, request.agent_id).shown
        for name in ("display_name", "language"):
            if request.HasField(name):
                setattr(shown, name, getattr(request, name))
        shown.memory_settings.MergeFrom(request.memory_settings)
        shown.update_time.FromDatetime(self.now)
        return agent_service_pb2.UpdateAgentResponse(agent=shown)

    def _DeleteAgent(self, tenant: str, _: int, request: agent_service_pb2.DeleteAgentRequest) -> Message:
        gone = self._agent(tenant, request.agent_id)
        del self.agents[tenant, request.agent_id]
        self.sessions = {name: one for name, one in self.sessions.items() if one.agent is not gone}
        return agent_service_pb2.DeleteAgentResponse()

    def _ListAuditEvents(self, _: str, ceiling: int, request: audit_service_pb2.ListAuditEventsRequest) -> Untold:
        filters = (request.agent_id, request.session_id)
        self._last("ListAuditEvents", request.page_token, filters, 0)
        self._page = (filters, ("audit", 0, None))
        return Untold(ceiling)

    # Pages.

    def _last(self, rpc: str, page_token: str, filters: tuple[object, ...], taint: int) -> Any:
        if not page_token:
            return None
        page = self._pages.get(page_token)
        if page is None or (page.caller, page.rpc, page.filters) != (self._token, rpc, filters):
            raise Refused("PAGE_TOKEN_INVALID")
        if page.taint != taint:
            raise Refused("TAINT_CHANGED")
        return page.last

    def _more(self, more: bool, filters: tuple[object, ...], taint: int, last: Any) -> str:
        self._page = (filters, (taint, last))
        return LATER if more else ""

    # What an answer teaches.

    def _learn(self, expected: Any, rpc: str, answer: Any) -> None:
        if hasattr(answer, "next_page_token") and answer.next_page_token:
            filters, (taint, last) = self._page[0], self._page[1][-2:]
            self._pages[answer.next_page_token] = Page(self._token, rpc, filters, taint or 0, last)
        if isinstance(expected, Untold):
            levels = [event.classification for event in answer.audit_events]
            agree(rpc, all(0 < level <= expected.ceiling for level in levels), "an event above the ceiling")
        elif isinstance(expected, Found):
            self._learn_found(expected, rpc, answer)
        else:
            known: Any = type(answer)()
            known.CopyFrom(expected)
            self._fill(rpc, known, answer)
            agree(rpc, known == answer, f"expected {known}but told {answer}")
            self._adopt(rpc, answer)

    def _fill(self, rpc: str, known: Any, answer: Any) -> None:
        """Put into *known* what could not be foretold, where it is consistent with what was told before."""
        if getattr(known, "next_page_token", "") and answer.next_page_token:
            known.next_page_token = answer.next_page_token
        for one, other in zip(memories_in(known), memories_in(answer), strict=False):
            self._bind(rpc, one, other)
        if getattr(known, "token", "") and re.fullmatch("mun_s_[0-9]+_[A-Za-z0-9_-]{43}", answer.token):
            known.token = answer.token
        if hasattr(known, "session"):
            known.session.session_id = random_id(known.session.session_id, answer.session.session_id)
            known.session.conversation_id = random_id(known.session.conversation_id, answer.session.conversation_id)
        if hasattr(known, "agent"):
            known.agent.agent_id = random_id(known.agent.agent_id, answer.agent.agent_id)

    def _bind(self, rpc: str, known: memory_pb2.Memory, told: memory_pb2.Memory) -> None:
        """One version, one etag, and the other way round."""
        same = self._versions.setdefault(known.etag, told.etag) == told.etag
        only = self._etags.setdefault(told.etag, known.etag) == known.etag
        agree(rpc, same and only, f"the etag of {known.key!r} is not its version's")
        known.etag = told.etag

    def _adopt(self, rpc: str, answer: Any) -> None:
        if rpc == "CreateAgent":
            tenant = self.hosts[self._token][0]
            self.agents[tenant, answer.agent.agent_id] = Agent(
                agent_pb2.Agent.FromString(answer.agent.SerializeToString())
            )
        if rpc in {"OpenSession", "ResetSession"}:
            shown = answer.session
            tenant = self.hosts[self._token][0]
            agent = self.agents[tenant, shown.agent_id]
            agent.conversations.setdefault(shown.conversation_id, Conversation(1)).taint = shown.taint
            times = (shown.create_time.ToDatetime(tzinfo=UTC), shown.expire_time.ToDatetime(tzinfo=UTC))
            self.sessions[shown.session_id] = Session(tenant, agent, shown.conversation_id, *times)
            self.tokens[answer.token] = shown.session_id

    def _learn_found(self, expected: Found, rpc: str, answer: memory_service_pb2.SearchMemoriesResponse) -> None:
        told = [(result.memory.key, result.score) for result in answer.results]
        keys = [key for key, _ in told]
        agree(rpc, set(keys) <= set(expected.scores), f"{keys} match, not only {list(expected.scores)}")
        agree(rpc, len(set(keys)) == min(len(expected.scores), expected.limit) == len(keys), "too many, or too few")
        agree(rpc, told == sorted(told, key=lambda one: (-one[1], one[0])), "not in order")
        agree(rpc, all(abs(expected.scores[key] - score) < 1e-5 for key, score in told), "other scores")
        left = max((score for key, score in expected.scores.items() if key not in keys), default=0.0)
        agree(rpc, all(score > left - 1e-5 for _, score in told), "a better match is left out")
        for result in answer.results:
            known = memory_pb2.Memory.FromString(expected.memories[result.memory.key].SerializeToString())
            self._bind(rpc, known, result.memory)
            agree(rpc, known == result.memory, f"expected {known}but told {result.memory}")
        agree(rpc, answer.classification == join([result.memory for result in answer.results]), "the label is wrong")
