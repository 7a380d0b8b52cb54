"""Sessions that may only read."""

from __future__ import annotations

from typing import Any

import pytest

from muniment_server.monitor import interceptors
from muniment_server.monitor.policy import Flow
from tests.rpcs import RPCS, World
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, events, refusal
from tests.support.canaries import new_canary
from tests.support.clock import Clock
from tests.support.methods import FOR_BOTH, FOR_SESSIONS, POLICIES
from tests.support.services import Caller, failure_of, reason_of

WRITES = sorted(name for name, method in POLICIES.items() if method.flow is Flow.WRITE)
OTHERS = sorted((FOR_SESSIONS | FOR_BOTH) - set(WRITES))
READ_ONLY = "PERMISSION_DENIED SESSION_READ_ONLY"
_CONTENT = """
SELECT (SELECT count(*) FROM muniment_confidential.item) AS items,
       (SELECT sum(revision) FROM muniment_confidential.item) AS changes,
       (SELECT count(*) FROM muniment_confidential.revision) AS revisions,
       (SELECT count(*) FROM muniment_confidential.deleted_item) AS deleted
"""


def filled(host: Caller) -> tuple[World, Any]:
    """A world with items, and a read-only session in the conversation that wrote them."""
    word = new_canary()
    World(word).fill_agents(host)
    opened = host.open_session(agent_id=word, taint=CONFIDENTIAL, conversation_id=word)
    world = World(word, opened.session.session_id, CONFIDENTIAL)
    world.fill(host.session(opened), "text")
    return world, host.open_session(agent_id=word, conversation_id=word, read_only=True)


@pytest.mark.parametrize("rpc", WRITES)
def test_a_read_only_session_calls_nothing_that_writes(host, rpc):
    world, opened = filled(host)

    assert reason_of(host.session(opened).observe(rpc, **RPCS[rpc].request(world))) == "SESSION_READ_ONLY"

    last = events(host, session_id=opened.session.session_id)[-1]
    assert (last.method, last.outcome, last.classification) == (rpc, "SESSION_READ_ONLY", CONFIDENTIAL)


@pytest.mark.parametrize("rpc", OTHERS)
def test_a_read_only_session_calls_everything_else(host, rpc):
    world, opened = filled(host)
    own = World(world.word, opened.session.session_id, world.level)

    assert reason_of(host.session(opened).observe(rpc, **RPCS[rpc].request(own))) == ""


def test_the_policy_of_each_method_says_whether_it_writes():
    stores = {name for name, method in POLICIES.items() if method.for_sessions and method.declared.stores_text}

    assert stores < set(WRITES)
    assert len(WRITES) > 15


def test_no_write_finds_a_read_only_session(service, monkeypatch):
    """Whatever refuses the call before: the session predicate of writes does not match it."""
    world, opened = filled(service.host())
    session = service.host().session(opened)
    monkeypatch.setattr(interceptors, "_denial", lambda *_: None)

    def content() -> Any:
        with service.database.as_owner() as owner:
            return owner.execute(_CONTENT).fetchone()

    before = content()
    outcomes = {rpc: reason_of(session.observe(rpc, **RPCS[rpc].request(world))) for rpc in WRITES}
    assert content() == before
    assert "" not in outcomes.values(), outcomes


def test_other_sessions_of_the_conversation_write(host, alice):
    reader = host.open_session(agent_id="alice", conversation_id="talk", read_only=True)
    writer = host.open_session(agent_id="alice", conversation_id="talk")

    host.session(writer).save_memory(key="plan", content="text")

    assert host.session(reader).get_memory(key="plan").memory.content == "text"
    assert refusal(host.session(reader).delete_memory, key="plan") == READ_ONLY


def test_it_is_shown_to_the_host_and_to_the_session(host, alice):
    reader = host.open_session(agent_id="alice", read_only=True)
    named = {"session_id": reader.session.session_id}

    assert reader.session.read_only
    assert host.session(reader).get_session().session.read_only
    assert host.get_session(**named).session.read_only
    assert host.raise_taint(**named, taint=INTERNAL).session.read_only
    host.open_session(agent_id="alice")
    assert [each.read_only for each in host.list_sessions(agent_id="alice").sessions] == [False, True]


@pytest.mark.parametrize("read_only", [True, False])
def test_a_raise_and_a_reset_leave_it_as_it_is(host, alice, read_only):
    old = host.open_session(agent_id="alice", conversation_id="talk", read_only=read_only)
    host.open_session(agent_id="alice", conversation_id="talk", read_only=not read_only)
    host.raise_taint(session_id=old.session.session_id, taint=INTERNAL)
    assert (reason_of(host.session(old).observe("SaveMemory", key="k", content="text")) != "") == read_only

    new = host.reset_session(session_id=old.session.session_id)

    assert (new.session.read_only, new.session.taint) == (read_only, PUBLIC)
    assert (reason_of(host.session(new).observe("SaveMemory", key="k", content="text")) != "") == read_only


def test_what_has_ended_is_said_first(service):
    """A token that is not valid any more tells nothing of its session."""
    service.agent()
    reader = service.host().open_session(agent_id="alice", read_only=True)
    session = service.host().session(reader)
    assert refusal(session.save_memory, key="k", content="text") == READ_ONLY
    Clock(service.database).advance(days=2)

    assert reason_of(failure_of(session.save_memory, key="k", content="text")) == "CREDENTIAL_EXPIRED"
