"""What the bearer of an expired credential learns, and no one else; and what the host sees of an expired session."""

from __future__ import annotations

import pytest

from muniment_server.domain import tokens
from muniment_server.domain.ids import TenantNumber
from muniment_server.domain.tokens import TokenKind
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, refusal
from tests.support.methods import FOR_HOSTS, FOR_SESSIONS
from tests.support.services import Caller

EXPIRED = "UNAUTHENTICATED CREDENTIAL_EXPIRED"
INVALID = "UNAUTHENTICATED CREDENTIAL_INVALID"
MINUTE = {"seconds": 60}


@pytest.fixture
def host(service):
    service.agent()
    return service.host()


def opened(host, level=PUBLIC, conversation="chat"):
    """A session for a minute."""
    return host.session(host.open_session(agent_id="alice", taint=level, conversation_id=conversation, ttl=MINUTE))


def shown(host, session):
    return host.get_session(session_id=session.session_id).session


@pytest.mark.parametrize("remembered", [False, True])
def test_the_bearer_of_an_expired_token_gets_the_same_answer_whatever_the_call_and_the_level(host, clock, remembered):
    sessions = [opened(host, level, conversation="") for level in LEVELS]
    for session in sessions if remembered else []:
        session.get_session()
    clock.advance(seconds=61)

    outcomes = [session.observe(rpc) for session in sessions for rpc in (*FOR_SESSIONS, "RaiseTaint", "ImportPassages")]

    assert refusal(sessions[0].get_memory, key="plan") == EXPIRED
    assert [outcome for outcome in outcomes if outcome != outcomes[0]] == []


def test_a_token_that_is_not_genuine_is_refused_as_ever_beside_expired_ones(host, clock):
    session = opened(host)
    clock.advance(seconds=61)
    tenant = TenantNumber(int(session.token.split("_")[2]))
    forged = [tokens.mint(kind, tenant=tenant, secret=b"\0" * 32) for kind in TokenKind]
    cut = [session.token[:-1], session.token[:-9][:-1] + "A", session.token.replace("mun_s_", "mun_h_")]

    for token in (*forged, *cut):
        assert refusal(Caller(host.channel, token).get_memory, key="plan") == INVALID
    assert refusal(session.get_memory, key="plan") == EXPIRED


@pytest.mark.parametrize("end", ["closed by the host", "closed by itself", "reset", "agent deleted"])
def test_a_session_that_ended_before_its_time_does_not_expire(host, clock, end):
    session = opened(host)
    session.get_session()
    ends = {
        "closed by the host": lambda: host.close_session(session_id=session.session_id),
        "closed by itself": session.close_session,
        "reset": lambda: host.reset_session(session_id=session.session_id),
        "agent deleted": lambda: host.delete_agent(agent_id="alice"),
    }
    ends[end]()
    clock.advance(seconds=61)

    assert refusal(session.get_memory, key="plan") == INVALID


def test_the_session_of_a_deleted_agent_is_not_known_to_have_expired(host, clock):
    session = opened(host)
    clock.advance(seconds=61)
    host.delete_agent(agent_id="alice")

    assert refusal(session.get_memory, key="plan") == INVALID


def test_a_purged_session_is_not_known_to_have_expired(service, host, clock):
    session = opened(host)
    clock.advance(seconds=61)
    assert refusal(session.get_memory, key="plan") == EXPIRED

    with service.database.as_owner() as owner:
        owner.execute("DELETE FROM vault.session")

    assert refusal(session.get_memory, key="plan") == INVALID


@pytest.mark.parametrize("is_used", [False, True])
def test_the_host_sees_which_taint_an_expired_session_would_have(host, clock, is_used):
    """Nothing has been reset, so whatever the session has read is at or below it."""
    session = opened(host)
    clock.advance(seconds=61)
    if is_used:
        assert refusal(session.get_memory, key="plan") == EXPIRED
    other = opened(host)
    host.raise_taint(session_id=other.session_id, taint=CONFIDENTIAL)

    expired = shown(host, session)
    assert (expired.taint, expired.HasField("close_time")) == (CONFIDENTIAL, is_used)
    assert not is_used or expired.close_time == expired.expire_time


@pytest.mark.parametrize("is_used", [False, True])
def test_a_reset_closes_expired_sessions_of_its_conversation_for_the_host(host, clock, is_used):
    """So a host does not go on at PUBLIC with a model that has read more. The bearer sees no change."""
    session, elsewhere = opened(host, CONFIDENTIAL), opened(host, CONFIDENTIAL, "other")
    clock.advance(seconds=61)
    if is_used:
        assert refusal(session.get_memory, key="plan") == EXPIRED
        assert refusal(elsewhere.get_memory, key="plan") == EXPIRED
    host.reset_session(session_id=opened(host, CONFIDENTIAL).session_id)

    closed = shown(host, session)
    assert (closed.taint, closed.close_time.ToDatetime() > closed.expire_time.ToDatetime()) == (PUBLIC, True)
    assert refusal(session.get_memory, key="plan") == EXPIRED
    assert shown(host, elsewhere).HasField("close_time") == is_used
    assert shown(host, elsewhere).close_time in (shown(host, elsewhere).expire_time, type(closed.close_time)())


def test_a_reset_leaves_what_an_earlier_one_has_closed(host, clock):
    session = opened(host)
    host.reset_session(session_id=session.session_id)
    before = shown(host, session)
    clock.advance(seconds=61)
    host.reset_session(session_id=opened(host).session_id)

    assert shown(host, session) == before


def test_the_bearer_of_an_expired_host_key_gets_the_same_answer_whatever_the_call(service, host):
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET expire_time = vault.clock()")

    outcomes = [host.observe(rpc) for rpc in (*FOR_HOSTS, "GetMemory")]

    assert refusal(host.list_agents) == EXPIRED
    assert [outcome for outcome in outcomes if outcome != outcomes[0]] == []


@pytest.mark.parametrize("cut_off", ["freeze_time", "revoke_time"])
def test_a_host_key_that_was_cut_off_does_not_expire(service, host, cut_off):
    with service.database.as_owner() as owner:
        owner.execute(f"UPDATE vault.host_key SET expire_time = vault.clock(), {cut_off} = vault.clock()".encode())

    assert refusal(host.list_agents) == INVALID


def test_a_level_is_never_opened_by_an_expired_key(service, host):
    """The key was valid when the session was opened, which lives on."""
    session = opened(host, INTERNAL)
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET expire_time = vault.clock()")

    assert refusal(host.open_session, agent_id="alice", taint=PUBLIC) == EXPIRED
    assert session.get_session().session.taint == INTERNAL
