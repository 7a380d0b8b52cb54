"""What a host sends and gets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest

from muniment import Classification, ItemKind, MemorySettings
from muniment.v1 import agent_pb2, agent_service_pb2, audit_service_pb2, session_service_pb2
from muniment.v1.classification_pb2 import CLASSIFICATION_RESTRICTED
from tests.support.examples import AGENT, AUDIT_EVENT, HOST_KEY, SESSION, SESSION_ID, TOKEN

NOON = datetime.fromtimestamp(1_760_000_000, UTC)


def test_an_agent_is_created_with_what_is_given(server, host):
    settings = MemorySettings(memory_enabled=False, user_char_limit=0)

    agent = host.create_agent("ada", display_name="Ada", language="en", memory_settings=settings)

    expected = agent_service_pb2.CreateAgentRequest(
        agent_id="ada",
        display_name="Ada",
        language="en",
        memory_settings=agent_pb2.MemorySettings(memory_enabled=False, user_char_limit=0),
    )
    assert [expected] == server.requests("CreateAgent")
    assert (
        agent.agent_id,
        agent.display_name,
        agent.language,
        agent.create_time,
        agent.update_time,
    ) == ("ada", "Ada", "en", NOON, NOON)
    assert MemorySettings(memory_enabled=True, memory_char_limit=0) == agent.memory_settings


def test_an_agent_starts_with_the_blocks_that_are_given(server, host):
    host.create_agent(initial_blocks={"personality": "dry", "plans": ""})
    host.create_agent()

    given, none = server.requests("CreateAgent")
    assert [(each.label, each.content) for each in given.initial_blocks] == [("personality", "dry"), ("plans", "")]
    assert list(none.initial_blocks) == []


def test_an_agent_without_blocks_cannot_be_asked_for(server, host):
    """To the server none given means its three."""
    with pytest.raises(ValueError, match="initial_blocks"):
        host.create_agent(initial_blocks={})

    assert server.asked == []


def test_an_update_distinguishes_absent_from_empty(server, host):
    host.update_agent("ada", language="")

    (request,) = server.requests("UpdateAgent")
    assert request.HasField("language")
    assert not request.HasField("display_name")
    assert not request.HasField("memory_settings")


def test_a_session_is_opened_as_asked(server, host):
    host.open_session("ada", Classification.INTERNAL, conversation_id="talk", ttl=timedelta(hours=1, milliseconds=500))

    (request,) = server.requests("OpenSession")
    assert (request.agent_id, request.taint, request.conversation_id) == ("ada", 2, "talk")
    assert (request.ttl.seconds, request.ttl.nanos) == (3600, 500_000_000)


def test_no_ttl_is_none(server, host):
    host.open_session("ada", Classification.INTERNAL)

    assert not server.requests("OpenSession")[0].HasField("ttl")


@pytest.mark.parametrize("level", [0, 5, "PUBLIC", None])
def test_an_invalid_level_is_not_sent(server, host, level):
    if level is not None:  # the conversation's own
        with pytest.raises(ValueError, match="Classification"):
            host.open_session("ada", level)
    with pytest.raises(ValueError, match="Classification"):
        host.raise_taint(SESSION_ID, level)

    assert server.asked == []


def test_an_opened_session_speaks_for_itself(server, host):
    session = host.open_session("ada", Classification.INTERNAL)
    session.get_memory("tea")

    assert session.token == TOKEN
    assert session.session.taint == Classification.INTERNAL
    assert [f"Bearer {HOST_KEY}", f"Bearer {TOKEN}"] == [each.metadata["authorization"] for each in server.asked]


def test_leaving_an_opened_session_closes_it(server, host):
    with host.open_session("ada", Classification.INTERNAL):
        assert server.requests("CloseSession") == []

    assert [session_service_pb2.CloseSessionRequest()] == server.requests("CloseSession")
    assert f"Bearer {TOKEN}" == server.asked[-1].metadata["authorization"]
    host.get_agent("ada")


def test_leaving_a_kept_session_leaves_it_open(server, host):
    with host.session(TOKEN) as session:
        session.get_memory("tea")

    assert server.requests("CloseSession") == []
    host.get_agent("ada")


def test_a_session_is_named_by_client_value_or_id(server, host):
    client = host.open_session("ada", Classification.INTERNAL)

    for session in (client, client.session, SESSION_ID):
        host.get_session(session)
        host.raise_taint(session, Classification.RESTRICTED, "read the payroll")
        host.close_session(session)

    assert {SESSION_ID} == {
        request.session_id
        for method in ("GetSession", "RaiseTaint", "CloseSession")
        for request in server.requests(method)
    }
    expected = session_service_pb2.RaiseTaintRequest(
        session_id=SESSION_ID,
        taint=CLASSIFICATION_RESTRICTED,
        reason="read the payroll",
    )
    assert [expected] * 3 == server.requests("RaiseTaint")


def test_a_reset_gives_a_new_session(server, host):
    fresh = host.reset_session(SESSION_ID, "wiped")

    assert fresh.token == TOKEN
    expected = session_service_pb2.ResetSessionRequest(session_id=SESSION_ID, reason="wiped")
    assert [expected] == server.requests("ResetSession")


def test_a_closed_session_says_when(server, host):
    answer = session_service_pb2.GetSessionResponse(session=SESSION)
    answer.session.close_time.FromDatetime(NOON)
    server.script("GetSession", answer)

    assert host.get_session(SESSION_ID).close_time == NOON
    assert host.get_session(SESSION_ID).close_time is None


def test_agents_come_from_all_pages(server, host):
    """An empty page in between is no end."""
    server.script(
        "ListAgents",
        agent_service_pb2.ListAgentsResponse(agents=[AGENT, AGENT], next_page_token="second"),
        agent_service_pb2.ListAgentsResponse(next_page_token="third"),
        agent_service_pb2.ListAgentsResponse(agents=[AGENT]),
    )

    assert len(list(host.list_agents(page_size=2))) == 3
    asked = [(request.page_size, request.page_token) for request in server.requests("ListAgents")]
    assert asked == [(2, ""), (2, "second"), (2, "third")]


def test_a_page_is_fetched_when_it_is_needed(server, host):
    server.script("ListAgents", agent_service_pb2.ListAgentsResponse(agents=[AGENT], next_page_token="second"))

    list(islice(host.list_agents(), 1))

    assert len(server.requests("ListAgents")) == 1


def test_sessions_come_from_all_pages(server, host):
    server.script(
        "ListSessions",
        session_service_pb2.ListSessionsResponse(sessions=[SESSION], next_page_token="second"),
    )

    assert len(list(host.list_sessions("ada", include_closed=True))) == 2
    asked = [(each.agent_id, each.include_closed, each.page_token) for each in server.requests("ListSessions")]
    assert asked == [("ada", True, ""), ("ada", True, "second")]


def test_audit_events_come_from_all_pages(server, host):
    server.script(
        "ListAuditEvents",
        audit_service_pb2.ListAuditEventsResponse(audit_events=[AUDIT_EVENT], next_page_token="second"),
    )
    east = timezone(timedelta(hours=2))

    events = list(host.list_audit_events(agent_id="ada", session=SESSION_ID, start_time=NOON.astimezone(east)))

    first, second = server.requests("ListAuditEvents")
    assert (first.agent_id, first.session_id, first.start_time.seconds) == ("ada", SESSION_ID, 1_760_000_000)
    assert not first.HasField("end_time")
    assert second.page_token == "second"
    assert (events[0].kind, events[0].session_id, events[0].host_key_id) == (ItemKind.MEMORY, None, None)


def test_an_invalid_time_is_not_sent(host):
    with pytest.raises(TypeError, match="datetime"):
        host.list_audit_events(start_time="2026-11-22").__next__()


def test_a_time_without_a_zone_is_not_sent(host):
    with pytest.raises(ValueError, match="zone"):
        list(host.list_audit_events(start_time=datetime(2026, 1, 1)))  # noqa: DTZ001 - the point
