"""Keys that know an agent whose ceiling they do not reach: they have conversations with it, up to their own ceiling."""

from __future__ import annotations

from functools import partial

import pytest

from muniment.v1 import session_pb2
from tests.calls.agents.test_ceilings import calls_on, calls_on_session
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, UP, detail, refusal
from tests.support.services import failure_of

NEVER = "00000000-0000-4000-8000-000000000000"
MANAGING = ("UpdateAgent", "DeleteAgent", "EraseItems", "UndeleteItem", "CreateSharedBlock")


@pytest.fixture
def ada(host):
    """An agent of three services: each service's key has another ceiling."""
    return host.create_agent(agent_id="ada", known_from=PUBLIC).agent


@pytest.mark.parametrize("ceiling", LEVELS)
@pytest.mark.parametrize("known_from", [None, *LEVELS])
def test_an_agent_is_known_from_a_ceiling_that_is_at_most_its_own(host, ceiling, known_from):
    fields = {} if known_from is None else {"known_from": known_from}
    agent = host.create_agent(agent_id="ada", ceiling=ceiling, **fields).agent
    assert agent.known_from == min(known_from or ceiling, ceiling)
    changed = host.update_agent(agent_id="ada", **fields).agent
    assert changed.known_from == agent.known_from
    assert host.update_agent(agent_id="ada", known_from=PUBLIC).agent.known_from == PUBLIC


@pytest.mark.parametrize(("key", "known_from"), UP)
def test_c23_below_known_from_the_agent_does_not_exist(shared, tenant, host, key, known_from):
    low = shared.host(tenant, key)
    host.create_agent(agent_id="high", known_from=known_from)
    session = shared.host(tenant, known_from).open_session(agent_id="high").session.session_id

    for (rpc, fields), (_, never) in zip(calls_on("high"), calls_on("never"), strict=True):
        assert low.observe(rpc, **fields) == low.observe(rpc, **never), (rpc, fields)
    for (rpc, fields), (_, never) in zip(calls_on_session(session), calls_on_session(NEVER), strict=True):
        assert low.observe(rpc, **fields) == low.observe(rpc, **never), rpc
    assert list(low.list_agents().agents) == []


def test_a_key_below_the_ceiling_sees_the_agent_without_what_is_above_the_key(shared, tenant, host, ada):
    secret = host.session(host.open_session(agent_id="ada", taint=CONFIDENTIAL))
    secret.save_memory(key="plan", content="secret")
    low = shared.host(tenant, PUBLIC)

    found = low.get_agent(agent_id="ada")
    assert (found.agent.agent_id, found.agent.ceiling, found.agent.known_from) == ("ada", 0, PUBLIC)
    assert [each.classification for each in found.storage] == [PUBLIC]
    assert [(agent.agent_id, agent.ceiling) for agent in low.list_agents().agents] == [("ada", 0)]


@pytest.mark.parametrize("key", [PUBLIC, INTERNAL, CONFIDENTIAL])
def test_c25_a_key_below_the_ceiling_changes_nothing_of_the_agent(shared, tenant, host, ada, key):
    low = shared.host(tenant, key)
    host.create_agent(agent_id="bob", ceiling=key)
    host.create_shared_block(owner_agent_id="ada", label="persona")
    links = {"owner_agent_id": "ada", "label": "persona"}
    calls = [(rpc, fields) for rpc, fields in calls_on("ada") if rpc in MANAGING]
    calls += [
        ("DeleteSharedBlock", links), ("AttachBlock", {**links, "agent_id": "bob"}),
        ("DetachBlock", {**links, "agent_id": "bob"}), ("ListBlockConsumers", links),
    ]  # fmt: skip
    before = host.get_agent(agent_id="ada")

    for rpc, fields in calls:
        assert refusal(partial(low.call, rpc), **fields) == "PERMISSION_DENIED AGENT_ABOVE_CEILING", rpc
    assert host.get_agent(agent_id="ada") == before
    events = [event for event in low.list_audit_events().audit_events if event.outcome == "AGENT_ABOVE_CEILING"]
    assert [event.method for event in reversed(events)] == [rpc for rpc, _ in calls]
    assert {(event.agent_id, event.classification) for event in events} == {("ada", key)}


@pytest.mark.parametrize(("key", "taint"), UP)
def test_c26_no_key_raises_a_conversation_above_the_key_that_began_it(shared, tenant, host, ada, key, taint):
    """A token that a service has given to a model never reads above the key of that service."""
    low = shared.host(tenant, key)
    opened = low.open_session(agent_id="ada", conversation_id="chat-42")
    assert (opened.session.taint, opened.session.ceiling) == (PUBLIC, key)
    above = {"session_id": opened.session.session_id, "taint": taint}

    assert refusal(low.raise_taint, **above) == "PERMISSION_DENIED CEILING_EXCEEDED"
    assert refusal(host.raise_taint, **above) == "PERMISSION_DENIED CONVERSATION_CEILING_EXCEEDED"
    again = {"agent_id": "ada", "conversation_id": "chat-42", "taint": taint}
    assert refusal(host.open_session, **again) == "PERMISSION_DENIED CONVERSATION_CEILING_EXCEEDED"
    assert low.raise_taint(session_id=opened.session.session_id, taint=key).session.taint == key
    assert host.session(opened).get_session().session.taint == key
    outcomes = [event.outcome for event in host.list_audit_events().audit_events]
    assert outcomes.count("CONVERSATION_CEILING_EXCEEDED") == 2


def test_c27_conversations_above_a_key_do_not_exist_for_it(shared, tenant, host, ada):
    low = shared.host(tenant, INTERNAL)
    high = host.open_session(agent_id="ada", conversation_id="chat-42", taint=RESTRICTED).session
    assert (high.ceiling, high.taint) == (RESTRICTED, RESTRICTED)

    for (rpc, fields), (_, never) in zip(calls_on_session(high.session_id), calls_on_session(NEVER), strict=True):
        assert low.observe(rpc, **fields) == low.observe(rpc, **never), rpc
    assert list(low.list_sessions(agent_id="ada", include_closed=True).sessions) == []
    own = low.open_session(agent_id="ada", conversation_id="chat-42").session
    assert (own.ceiling, own.taint) == (INTERNAL, PUBLIC)
    assert [each.session_id for each in low.list_sessions(agent_id="ada").sessions] == [own.session_id]
    assert low.reset_session(session_id=own.session_id).session.ceiling == INTERNAL
    assert host.get_session(session_id=high.session_id).session == high
    seen = low.list_audit_events(agent_id="ada").audit_events
    assert {event.session_id for event in seen} & {high.session_id} == set()
    assert [event.method for event in seen if event.outcome == "OK"] == ["ResetSession", "OpenSession"]


def test_a_name_resolves_to_the_highest_conversation_that_the_key_reaches(shared, tenant, host, ada):
    low, middle = shared.host(tenant, PUBLIC), shared.host(tenant, INTERNAL)
    of_low = low.open_session(agent_id="ada", conversation_id="chat-42").session
    assert middle.open_session(agent_id="ada", conversation_id="chat-42").session.ceiling == of_low.ceiling == PUBLIC
    assert middle.open_session(agent_id="ada", conversation_id="other").session.ceiling == INTERNAL
    assert low.open_session(agent_id="ada", conversation_id="other").session.ceiling == PUBLIC
    assert [host.open_session(agent_id="ada", conversation_id="other").session.ceiling] == [INTERNAL]
    names = [each.conversation_id for each in host.list_sessions(agent_id="ada").sessions]
    assert names == ["other", "other", "other", "chat-42", "chat-42"]


def test_the_audit_of_a_known_agent_shows_what_the_key_did_and_its_conversations(shared, tenant, host, ada):
    low = shared.host(tenant, PUBLIC)
    session = low.open_session(agent_id="ada")
    host.session(session).save_memory(key="city", content="Basel")
    host.update_agent(agent_id="ada", display_name="Ada")
    other = host.open_session(agent_id="ada")
    host.session(other).save_memory(key="street", content="Rhine")
    host.close_session(session_id=session.session.session_id)

    methods = [event.method for event in low.list_audit_events(agent_id="ada").audit_events]
    assert methods == ["CloseSession", "SaveMemory", "OpenSession"]


def test_the_level_that_a_conversation_has_reached_is_in_the_refusal_of_a_lower_one(host):
    host.create_agent(agent_id="ada")
    host.open_session(agent_id="ada", conversation_id="chat-42", taint=CONFIDENTIAL)

    refused = failure_of(host.open_session, agent_id="ada", conversation_id="chat-42", taint=INTERNAL)
    assert detail(refused, session_pb2.ConversationTainted).taint == CONFIDENTIAL


@pytest.mark.parametrize("taint", [PUBLIC, INTERNAL])
def test_c27_a_session_is_in_its_own_conversation_of_two_of_one_name(shared, tenant, host, ada, taint):
    """Once the lower one is raised, nothing is written at its old level, though the other one has that."""
    high = host.session(host.open_session(agent_id="ada", conversation_id="chat-42", taint=taint))
    key = shared.host(tenant, CONFIDENTIAL)
    opened = key.open_session(agent_id="ada", conversation_id="chat-42", taint=taint)
    low = key.session(opened)

    low.save_memory(key="city", content="Basel")
    assert [memory.key for memory in high.list_memories().memories] == ["city"]
    key.raise_taint(session_id=opened.session.session_id, taint=CONFIDENTIAL)
    low.save_memory(key="plan", content="hidden")
    assert [memory.key for memory in high.list_memories().memories] == ["city"]
    assert [memory.classification for memory in low.list_memories().memories] == [taint, CONFIDENTIAL]


@pytest.mark.parametrize(("key", "known_from"), UP)
def test_c22_a_session_sees_no_shared_block_of_an_agent_that_its_key_does_not_know(
    shared, tenant, host, ada, key, known_from
):
    """Whenever the owner, or the reader, became known to such keys."""
    host.create_agent(agent_id="team", known_from=known_from)
    host.create_shared_block(owner_agent_id="team", label="rules", content="be kind")
    host.attach_block(owner_agent_id="team", label="rules", agent_id="ada")
    low = shared.host(tenant, key)
    of_low, of_host = low.session(low.open_session(agent_id="ada")), host.session(host.open_session(agent_id="ada"))
    never = of_low.observe("GetBlock", label="never")

    assert of_low.observe("GetBlock", label="rules") == never
    assert "rules" not in [block.label for block in of_low.list_blocks().blocks]
    assert of_host.get_block(label="rules").block.content == "be kind"
    host.update_agent(agent_id="team", known_from=key)
    assert of_low.get_block(label="rules").block.content == "be kind"
    host.update_agent(agent_id="team", known_from=known_from)
    assert of_low.observe("GetBlock", label="rules") == never
