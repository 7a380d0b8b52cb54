"""The ceiling of an agent: no conversation reaches above it, and for keys below it the agent does not exist."""

from __future__ import annotations

import uuid

import pytest

from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PAIRS, PUBLIC, RESTRICTED, UP, refusal
from tests.support.erasing import erase_all

_MEMORY = 1


def calls_on(agent_id: str):
    """What a host can do with an agent by its id."""
    yield "GetAgent", {"agent_id": agent_id}
    yield "UpdateAgent", {"agent_id": agent_id, "display_name": "Mallory"}
    yield "UpdateAgent", {"agent_id": agent_id, "limits": {"max_items": 1}}
    yield "DeleteAgent", {"agent_id": agent_id}
    yield "EraseItems", {"agent_id": agent_id, "kind": _MEMORY, "name": "plan"}
    yield "UndeleteItem", {"agent_id": agent_id, "kind": _MEMORY, "name": "plan", "classification": PUBLIC}
    yield "OpenSession", {"agent_id": agent_id, "taint": PUBLIC}
    yield "OpenSession", {"agent_id": agent_id, "taint": RESTRICTED}
    yield "ListSessions", {"agent_id": agent_id, "include_closed": True}
    yield "CreateSharedBlock", {"owner_agent_id": agent_id, "label": "plan"}
    yield "ListAuditEvents", {"agent_id": agent_id}


def calls_on_session(session_id: str):
    """What a host can do with a session."""
    yield "GetSession", {"session_id": session_id}
    yield "RaiseTaint", {"session_id": session_id, "taint": PUBLIC}
    yield "RaiseTaint", {"session_id": session_id, "taint": RESTRICTED}
    yield "ResetSession", {"session_id": session_id}
    yield "CloseSession", {"session_id": session_id}


@pytest.mark.parametrize("ceiling", LEVELS)
def test_an_agent_has_the_ceiling_of_the_key_that_created_it(shared, tenant, ceiling):
    host = shared.host(tenant, ceiling)

    assert host.create_agent(agent_id="alice").agent.ceiling == ceiling
    assert host.get_agent(agent_id="alice").agent.ceiling == ceiling
    assert [agent.ceiling for agent in host.list_agents().agents] == [ceiling]
    assert host.update_agent(agent_id="alice", display_name="Alice").agent.ceiling == ceiling


@pytest.mark.parametrize(("key", "ceiling"), PAIRS)
def test_another_ceiling_can_be_given_up_to_that_of_the_key(shared, tenant, key, ceiling):
    host = shared.host(tenant, key)
    if ceiling <= key:
        assert host.create_agent(agent_id="alice", ceiling=ceiling).agent.ceiling == ceiling
    else:
        assert refusal(host.create_agent, agent_id="alice", ceiling=ceiling) == "PERMISSION_DENIED CEILING_EXCEEDED"
        assert list(shared.host(tenant).list_agents().agents) == []
        [refused] = shared.host(tenant).list_audit_events().audit_events
        assert (refused.method, refused.outcome) == ("CreateAgent", "CEILING_EXCEEDED")
        assert refused.classification == ceiling


@pytest.mark.parametrize(("ceiling", "taint"), PAIRS)
def test_no_session_opens_or_is_raised_above_the_ceiling_of_its_agent(host, ceiling, taint):
    host.create_agent(agent_id="alice", ceiling=ceiling)
    low = host.open_session(agent_id="alice", taint=PUBLIC, conversation_id="low").session.session_id
    calls = (
        (host.open_session, {"agent_id": "alice", "taint": taint, "conversation_id": "high"}),
        (host.raise_taint, {"session_id": low, "taint": taint, "reason": "why"}),
    )
    if taint <= ceiling:
        assert [call(**fields).session.taint for call, fields in calls] == [taint, taint]
        return
    assert [refusal(call, **fields) for call, fields in calls] == ["PERMISSION_DENIED AGENT_CEILING_EXCEEDED"] * 2

    assert host.get_session(session_id=low).session.taint == PUBLIC
    assert [each.session_id for each in host.list_sessions(agent_id="alice").sessions] == [low]
    raised, opened, *_ = host.list_audit_events().audit_events
    assert [(event.method, event.outcome, event.reason) for event in (opened, raised)] == [
        ("OpenSession", "AGENT_CEILING_EXCEEDED", ""), ("RaiseTaint", "AGENT_CEILING_EXCEEDED", ""),
    ]  # fmt: skip
    assert {(event.agent_id, event.classification) for event in (opened, raised)} == {("alice", RESTRICTED)}
    # the refused conversation does not exist: it can begin at any level
    assert host.open_session(agent_id="alice", taint=PUBLIC, conversation_id="high").session.taint == PUBLIC


@pytest.mark.parametrize(("key", "ceiling"), UP)
def test_c23_for_a_key_below_its_ceiling_an_agent_does_not_exist(shared, tenant, host, key, ceiling):
    """Whatever the agent holds: here, nothing above PUBLIC."""
    low = shared.host(tenant, key)
    host.create_agent(agent_id="high", ceiling=ceiling)
    low.create_agent(agent_id="low")
    session = host.open_session(agent_id="high", taint=PUBLIC).session.session_id
    before = host.get_agent(agent_id="high").agent, host.get_session(session_id=session)

    for (rpc, fields), (_, never) in zip(calls_on("high"), calls_on("never"), strict=True):
        assert low.observe(rpc, **fields) == low.observe(rpc, **never), (rpc, fields)
    for (rpc, fields), (_, never) in zip(calls_on_session(session), calls_on_session(str(uuid.uuid4())), strict=True):
        assert low.observe(rpc, **fields) == low.observe(rpc, **never), (rpc, fields)
    assert [agent.agent_id for agent in low.list_agents().agents] == ["low"]
    seen = low.list_audit_events().audit_events
    assert {event.agent_id for event in seen} <= {"low", ""}
    assert {event.session_id for event in seen if event.outcome == "OK"} == {""}
    assert (host.get_agent(agent_id="high").agent, host.get_session(session_id=session)) == before


def test_the_event_of_a_refusal_names_no_agent_that_does_not_exist_for_the_key(shared, tenant, host):
    low = shared.host(tenant, PUBLIC)
    host.create_agent(agent_id="high")
    session = host.open_session(agent_id="high", taint=PUBLIC).session.session_id
    refused = "PERMISSION_DENIED CEILING_EXCEEDED"

    assert refusal(low.open_session, agent_id="high", taint=RESTRICTED) == refused
    assert refusal(low.raise_taint, session_id=session, taint=RESTRICTED) == refused

    events = [event for event in host.list_audit_events().audit_events if event.outcome == "CEILING_EXCEEDED"]
    assert [event.agent_id for event in events] == ["", ""]


def test_c23_the_audit_events_of_an_erased_agent_are_for_keys_that_reach_its_ceiling(service):
    """As they were before the eraser has run."""
    low = service.host(ceiling=INTERNAL)
    low.create_agent(agent_id="low")
    service.host().create_agent(agent_id="high")
    for agent_id in ("low", "high"):
        service.host().delete_agent(agent_id=agent_id)
    before = [(host, host.list_audit_events()) for host in (low, service.host())]

    erase_all(service.database)

    assert [(event.method, event.classification) for event in before[0][1].audit_events][:1] == [
        ("DeleteAgent", PUBLIC)
    ]
    for host, listed in before:
        found = host.list_audit_events().audit_events
        assert [event.event_id for event in found] == [event.event_id for event in listed.audit_events]


def test_the_audit_events_of_an_agent_of_unknown_ceiling_are_for_keys_that_reach_everything(service):
    """It was erased by an earlier version, or the backup lacked it."""
    low = service.host(ceiling=INTERNAL)
    low.create_agent(agent_id="alice")
    service.host().create_agent(agent_id="high")
    for agent_id in ("alice", "high"):
        service.host().delete_agent(agent_id=agent_id)
    with service.database.as_owner() as owner:
        owner.execute("DELETE FROM vault.agent")

    assert [event.method for event in low.list_audit_events().audit_events] == []
    methods = {event.method for event in service.host().list_audit_events().audit_events}
    assert methods == {"CreateAgent", "DeleteAgent"}


def test_an_id_is_taken_for_all_keys_of_the_tenant(shared, tenant, host):
    host.create_agent(agent_id="alice", ceiling=CONFIDENTIAL)

    assert refusal(shared.host(tenant, PUBLIC).create_agent, agent_id="alice") == "ALREADY_EXISTS AGENT_EXISTS"
    assert host.get_agent(agent_id="alice").agent.ceiling == CONFIDENTIAL
