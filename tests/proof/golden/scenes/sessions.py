"""SessionService, but for what a raised taint does to calls."""

from __future__ import annotations

import uuid

from tests.proof.golden.contract import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED
from tests.proof.golden.stage import Stage

UNKNOWN = str(uuid.UUID(int=1))


def sessions(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    stage.host().create_agent(agent_id="bob")
    for ceiling in LEVELS:
        _at_a_ceiling(stage, ceiling)
    _opened(stage)
    _in_conversations(stage)
    _themselves(stage)
    _listed(stage)
    _reset_and_closed(stage)
    _bound(stage)
    _expired(stage)
    _known_to_lower_keys(stage)


def _at_a_ceiling(stage: Stage, ceiling: int) -> None:
    stage.say(f"A host up to {LEVELS[ceiling]}: everything at every level")
    host, agent = stage.host(ceiling), _up_to(ceiling)
    host.create_agent(agent_id=agent)
    host.create_agent(agent_id=f"{agent}-too-high", ceiling=RESTRICTED)
    for level in LEVELS:
        host.open_session(agent_id="bob", taint=level)
        host.get_session(session_id=stage.open(level, "bob").session.session_id)
        host.open_session(agent_id=agent, taint=level)
        if level > ceiling:
            stage.host().open_session(agent_id=agent, taint=level)
            continue
        opened = stage.open(level, agent).session
        host.get_session(session_id=opened.session_id)
        host.raise_taint(session_id=opened.session_id, taint=ceiling, reason=f"to {LEVELS[ceiling]}")
        host.raise_taint(session_id=opened.session_id, taint=level)
        host.raise_taint(session_id=opened.session_id, taint=RESTRICTED)
        stage.host().raise_taint(session_id=opened.session_id, taint=RESTRICTED)
        host.renew_session(session_id=opened.session_id)
        anew = host.reset_session(session_id=opened.session_id, reason="clean")
        host.close_session(session_id=opened.session_id)
        if anew:
            host.close_session(session_id=anew.session.session_id)
        host.close_session(session_id=opened.session_id)
    for name in (agent, "bob", "never"):
        host.list_sessions(agent_id=name)
        host.list_sessions(agent_id=name, include_closed=True)


def _up_to(ceiling: int) -> str:
    return f"up-to-{LEVELS[ceiling].lower()}"


def _opened(stage: Stage) -> None:
    stage.say("How sessions may be opened")
    host = stage.host()
    for ttl in ({"seconds": 1}, {"seconds": 2_592_000}, {"seconds": 90, "nanos": 123_456_789}):
        host.open_session(agent_id="alice", taint=PUBLIC, ttl=ttl)
    for ttl in ({}, {"seconds": -1}, {"seconds": 2_592_001}, {"seconds": 1, "nanos": -1}, {"seconds": 10**15}):
        host.open_session(agent_id="alice", taint=PUBLIC, ttl=ttl)
    for taint in (0, 5, -1):
        host.open_session(agent_id="alice", taint=taint)
    host.open_session(agent_id="never", taint=PUBLIC)
    host.open_session(agent_id="a b", taint=PUBLIC, conversation_id="no conversation")
    host.open_session(taint=RESTRICTED)
    stage.host(tenant="globex").open_session(agent_id="alice", taint=PUBLIC)
    stage.host(PUBLIC).open_session(agent_id="never", taint=RESTRICTED)


def _in_conversations(stage: Stage) -> None:
    stage.say("Conversations")
    host = stage.host()
    for one in LEVELS:
        for other in LEVELS:
            conversation = f"c{one}{other}"
            stage.open(one, conversation_id=conversation)
            host.open_session(agent_id="alice", taint=other, conversation_id=conversation)
            stage.host(PUBLIC).open_session(agent_id="alice", taint=PUBLIC, conversation_id=conversation)
    host.open_session(agent_id="bob", taint=PUBLIC, conversation_id="c44")


def _themselves(stage: Stage) -> None:
    stage.say("What a session may do to itself")
    for session in stage.levels().values():
        session.get_session()
        session.get_session(session_id=session.session.session_id)
        session.get_session(session_id=UNKNOWN)
        session.get_session(session_id="no id")
        session.raise_taint(session_id=session.session.session_id, taint=RESTRICTED)
        session.close_session(session_id=UNKNOWN)
        session.close_session(session_id="no id")
        session.close_session()
        session.close_session()
        session.get_session()
    for session in stage.levels("bob").values():
        session.close_session(session_id=session.session.session_id)


def _listed(stage: Stage) -> None:
    stage.say("Pages")
    for ceiling in LEVELS:
        stage.host(ceiling).pages("ListSessions", agent_id=_up_to(ceiling), include_closed=True, page_size=3)
    stage.host().pages("ListSessions", agent_id="alice", page_size=20)
    host = stage.host()
    first = host.list_sessions(agent_id="alice", page_size=1)
    host.list_sessions(agent_id="bob", page_size=1, page_token=first.next_page_token)
    host.list_sessions(agent_id="alice", page_token=first.next_page_token, include_closed=True)
    host.list_sessions(agent_id="alice", page_size=3, page_token=first.next_page_token)
    stage.host(PUBLIC).list_sessions(agent_id="alice", page_token=first.next_page_token)
    host.list_agents(page_token=first.next_page_token)
    host.list_sessions(agent_id="alice", page_size=-1, page_token="?")
    host.list_sessions()


def _bound(stage: Stage) -> None:
    stage.say("Sessions that may only read, and a key for untrusted ones")
    stage.open(PUBLIC, read_only=True).save_memory(key="plan", content="ship")
    bound = stage.host(name="bound")
    bound.open_session(agent_id="alice", taint=PUBLIC)
    bound.open_session(agent_id="alice", taint=PUBLIC, integrity=1)
    bound.list_agents()


def _reset_and_closed(stage: Stage) -> None:
    stage.say("A conversation that begins anew")
    host = stage.host()
    for level in LEVELS:
        session = stage.open(level, conversation_id=f"anew{level}")
        beside = stage.open(level, conversation_id=f"anew{level}")
        new = stage.session(host.reset_session(session_id=session.session.session_id))
        for each in (session, beside, new):
            each.get_session()
        host.raise_taint(session_id=session.session.session_id, taint=RESTRICTED)
        host.reset_session(session_id=beside.session.session_id)
    host.reset_session(session_id=UNKNOWN)
    host.reset_session()
    host.reset_session(session_id=UNKNOWN, reason="x" * 201)
    host.raise_taint(session_id=UNKNOWN, taint=CONFIDENTIAL)
    host.raise_taint(session_id="no id", taint=0, reason="x" * 201)
    host.raise_taint(session_id=UNKNOWN, taint=INTERNAL, reason="a\0")
    host.get_session()
    host.get_session(session_id=UNKNOWN)
    host.close_session()
    host.close_session(session_id=UNKNOWN)
    other = stage.open(PUBLIC).session.session_id
    for rpc in ("GetSession", "CloseSession", "ResetSession"):
        stage.host(tenant="globex").call(rpc, session_id=other)


def _expired(stage: Stage) -> None:
    stage.say("Sessions live for a while")
    sessions = stage.levels("bob", ttl={"seconds": 60})
    for session in sessions.values():
        session.get_session()
    stage.wait(seconds=70)
    for session in sessions.values():
        session.get_session()
        session.list_memories()
        stage.host().get_session(session_id=session.session.session_id)
        stage.host().raise_taint(session_id=session.session.session_id, taint=RESTRICTED)
        stage.host().close_session(session_id=session.session.session_id)


def _known_to_lower_keys(stage: Stage) -> None:
    stage.say("An agent that lower keys know")
    host = stage.host()
    host.create_agent(agent_id="shared", known_from=PUBLIC)
    for ceiling in LEVELS:
        low = stage.host(ceiling)
        low.get_agent(agent_id="shared")
        low.update_agent(agent_id="shared", display_name=LEVELS[ceiling])
        low.create_shared_block(owner_agent_id="shared", label=LEVELS[ceiling].lower())
        low.erase_items(agent_id="shared", kind=1, name="plan")
        opened = low.open_session(agent_id="shared", conversation_id=f"of-{ceiling}")
        for taint in LEVELS if opened else ():
            host.raise_taint(session_id=opened.session.session_id, taint=taint)
            host.open_session(agent_id="shared", conversation_id=f"of-{ceiling}", taint=taint)
        low.open_session(agent_id="shared", conversation_id="same")
    for ceiling in LEVELS:
        low = stage.host(ceiling)
        low.open_session(agent_id="shared", conversation_id="same")
        low.list_sessions(agent_id="shared")
        low.list_audit_events(agent_id="shared")
    host.update_agent(agent_id="shared", known_from=RESTRICTED)
    stage.host(PUBLIC).open_session(agent_id="shared")
