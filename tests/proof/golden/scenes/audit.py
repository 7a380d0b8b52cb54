"""AuditService: what was recorded of a little of everything, as each ceiling sees it."""

from __future__ import annotations

import uuid
from typing import Any

from tests.proof.golden.contract import LEVELS, PUBLIC, RESTRICTED
from tests.proof.golden.stage import Actor, Stage

ID = str(uuid.UUID(int=1))


def audit(stage: Stage) -> None:
    host = stage.host()
    host.create_agent(agent_id="alice", display_name="A")
    host.update_agent(agent_id="alice", language="en")
    for ceiling in LEVELS:
        stage.host(ceiling).open_session(agent_id="alice", taint=RESTRICTED)
    sessions = stage.levels()
    for session in sessions.values():
        _everything(session)
    _hosts(stage, sessions)
    for ceiling in LEVELS:
        _listed(stage.host(ceiling), sessions)
    _broken_rules(host)


def _everything(session: Actor) -> None:
    session.save_memory(key="plan", content="one")
    stale = session.get_memory(key="plan").memory.etag
    session.save_memory(key="plan", content="two")
    session.save_memory(key="plan", content="three", etag=stale)
    session.list_memories()
    session.search_memories(query="two")
    session.get_memory(key="never")
    session.add_note(content="note", note_id=ID)
    session.update_note(note_id=ID, content="newer")
    session.edit_notes(edits=[{"add": {"content": "more"}}, {"delete": {"note_id": ID}}])
    session.add_note(content="x" * 3000)
    session.list_notes()
    session.search_notes(query="more")
    session.update_block(label="plan", content="block")
    session.edit_block(label="plan", append={"content": "."})
    session.edit_block(label="plan", replace={"old": "never", "new": "x"})
    session.list_blocks()
    session.delete_block(label="plan")
    passage = session.store_passage(content="passage").passage.passage_id
    session.import_passages({"passage": {"content": "streamed"}}, {"passage": {"content": "twice"}})
    session.get_passage(passage_id=passage)
    session.list_passages()
    session.search_passages(query="streamed")
    session.delete_passage(passage_id=passage)
    session.delete_memory(key="plan")
    session.render_prompt()
    session.get_session()
    session.list_agents()


def _hosts(stage: Stage, sessions: dict[int, Actor]) -> None:
    host = stage.host()
    host.create_agent(agent_id="bob")
    shared = {"owner_agent_id": "alice", "label": "shared"}
    host.create_shared_block(content="all", **shared)
    host.attach_block(agent_id="bob", **shared)
    host.detach_block(agent_id="bob", **shared)
    host.delete_shared_block(**shared)
    host.list_memories()
    host.raise_taint(session_id=sessions[PUBLIC].session.session_id, taint=RESTRICTED, reason="shown the plan")
    host.reset_session(session_id=sessions[PUBLIC].session.session_id, reason="wiped")
    host.open_session(agent_id="alice", taint=PUBLIC, conversation_id=sessions[RESTRICTED].session.conversation_id)
    host.close_session(session_id=sessions[RESTRICTED].session.session_id)
    host.delete_agent(agent_id="bob")


def _listed(host: Actor, sessions: dict[int, Actor]) -> None:
    host.stage.say(f"As a host up to {LEVELS[host.level]} sees it")
    host.pages("ListAuditEvents", page_size=100)
    first = host.list_audit_events(page_size=1)
    host.list_audit_events(page_size=2, page_token=first.next_page_token)
    host.list_audit_events(agent_id="bob")
    host.list_audit_events(agent_id="bob", page_token=first.next_page_token)
    for session in sessions.values():
        host.list_audit_events(session_id=session.session.session_id, page_size=3)
    host.list_audit_events(session_id=ID)
    middle = host.stage.time.replace(minute=1, second=0, microsecond=0)
    for fields in ({"start_time": middle, "page_size": 2}, {"end_time": middle, "page_size": 2}):
        host.list_audit_events(**fields)
    host.list_audit_events(page_token="no token")
    for level in (*LEVELS, 0, 9):
        host.get_audit_checkpoint(classification=level)


def _broken_rules(host: Actor) -> None:
    host.stage.say("What breaks rules")
    broken: tuple[dict[str, Any], ...] = (
        {"agent_id": "a b"}, {"agent_id": "~0"}, {"agent_id": "never"}, {"session_id": "no id"}, {"page_size": -1},
        {"start_time": {"seconds": 10**13}}, {"end_time": {"nanos": -1}},
    )  # fmt: skip
    for fields in broken:
        host.list_audit_events(**fields)
    first = host.list_audit_events(page_size=1).next_page_token
    host.stage.host(PUBLIC).list_audit_events(page_size=1, page_token=first)
    host.stage.host(tenant="globex").list_audit_events()
