"""RenewSession: the same session, token and conversation, for another while."""

from __future__ import annotations

from datetime import timedelta

import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.sessions import close_sessions
from muniment_server.domain.classification import Classification
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, events, invalid, refusal
from tests.support.concurrency import in_background, lock_rows, wait_until_blocked
from tests.support.services import reason_of

EXPIRED = "UNAUTHENTICATED CREDENTIAL_EXPIRED"
INVALID = "UNAUTHENTICATED CREDENTIAL_INVALID"
NO_SESSION = "NOT_FOUND SESSION_NOT_FOUND"
MINUTE = {"seconds": 60}
OVER = 61
"""Seconds after which a session of a minute has expired."""


@pytest.fixture
def host(service):
    service.agent()
    return service.host()


def opened(host, level=PUBLIC, conversation="chat", **fields):
    """A session for a minute."""
    fields = {"agent_id": "alice", "taint": level, "conversation_id": conversation, "ttl": MINUTE} | fields
    return host.session(host.open_session(**fields))


def renewed(host, session, **fields):
    return host.renew_session(session_id=session.session_id, **fields).session


def left(session, clock):
    return session.expire_time.ToDatetime() - clock.now.replace(tzinfo=None)


@pytest.fixture
def stopped(service, clock):
    """A clock that stands still. It says which time it is."""
    with service.database.as_owner() as owner:
        [clock.now] = owner.execute("SELECT now()").fetchone()
    clock.stop_at(clock.now)
    return clock


def pass_time(clock, seconds):
    clock.now += timedelta(seconds=seconds)
    clock.stop_at(clock.now)


@pytest.mark.parametrize("seconds", [0, 30, OVER, 10**7])
@pytest.mark.parametrize(("ttl", "lasts"), [({"ttl": {"seconds": 5}}, 5), ({"ttl": {"seconds": 90}}, 90), ({}, 86400)])
def test_a_session_lasts_as_long_as_is_asked_for_from_now_on(host, stopped, seconds, ttl, lasts):
    """The ttl that is given is what counts, also if the session would have lasted longer."""
    session = opened(host, CONFIDENTIAL)
    before = session.get_session().session
    pass_time(stopped, seconds)

    answer = renewed(host, session, **ttl)

    assert left(answer, stopped) == timedelta(seconds=lasts)
    assert host.get_session(session_id=session.session_id).session == answer
    answer.ClearField("ceiling")
    assert session.get_session().session == answer
    before.expire_time.CopyFrom(answer.expire_time)
    assert before == answer
    pass_time(stopped, lasts)
    assert refusal(session.get_session) == EXPIRED


@pytest.mark.parametrize("ttl", [{}, {"seconds": 0, "nanos": 999_999_999}, {"seconds": 2592001}, {"seconds": -5}])
def test_another_ttl_is_refused(host, ttl):
    assert invalid(host.renew_session, session_id=opened(host).session_id, ttl=ttl) == ["ttl"]


@pytest.mark.parametrize("is_used", [False, True])
def test_a_session_that_a_server_has_found_expired_is_valid_again(host, clock, is_used):
    session = opened(host)
    session.save_memory(key="plan", content="text")
    clock.advance(seconds=OVER)
    if is_used:
        assert refusal(session.get_memory, key="plan") == EXPIRED

    assert not renewed(host, session).HasField("close_time")

    assert session.get_memory(key="plan").memory.content == "text"
    assert [each.session_id for each in host.list_sessions(agent_id="alice").sessions] == [session.session_id]


def test_page_tokens_stay_valid(host, clock):
    session = opened(host)
    for key in ("a", "b"):
        session.save_memory(key=key, content="text")
    token = session.list_memories(page_size=1).next_page_token
    clock.advance(seconds=OVER)
    renewed(host, session)

    assert [each.key for each in session.list_memories(page_size=1, page_token=token).memories] == ["b"]


@pytest.mark.parametrize("level", LEVELS)
def test_its_label_is_that_of_its_conversation(host, clock, level):
    session = opened(host, integrity=1)
    clock.advance(seconds=OVER)
    other = opened(host, integrity=1)
    host.raise_taint(session_id=other.session_id, taint=level)

    answer = renewed(host, session)

    assert (answer.taint, answer.integrity) == (level, 0)
    assert session.save_memory(key="plan", content="text").memory.classification == level
    [event] = [each for each in events(host) if each.method == "RenewSession"]
    assert (event.session_id, event.classification, event.integrity) == (session.session_id, level, 0)
    assert (event.outcome, event.agent_id) == ("OK", "alice")


@pytest.mark.parametrize("is_read_only", [False, True])
def test_it_stays_read_only_or_not(host, clock, is_read_only):
    session = opened(host, read_only=is_read_only)
    clock.advance(seconds=OVER)

    assert renewed(host, session).read_only is is_read_only
    outcome = reason_of(session.observe("SaveMemory", key="plan", content="text"))
    assert outcome == ("SESSION_READ_ONLY" if is_read_only else "")


# A session that was ended stays ended


def restore(service):
    """What a restore does with sessions, after a raise that the backup did not have."""
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.conversation SET taint = 1")
    with connect_operator(service.database.admin) as operator:
        close_sessions(operator, "restore")


def purge(service):
    with service.database.as_owner() as owner:
        owner.execute("DELETE FROM vault.session")


def recreate(service):
    service.host().delete_agent(agent_id="alice")
    service.agent()


def reset(service):
    """Through another session of the conversation."""
    host = service.host()
    other = host.open_session(agent_id="alice", conversation_id="chat").session
    host.reset_session(session_id=other.session_id)


def close(service):
    host = service.host()
    [session] = host.list_sessions(agent_id="alice", include_closed=True).sessions
    host.close_session(session_id=session.session_id)


@pytest.mark.parametrize("end", [restore, purge, recreate, reset, close])
@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("seconds", [0, OVER])
def test_a_session_that_was_ended_is_not_renewed(service, host, clock, end, is_used, seconds):
    """Otherwise a model that has read what is CONFIDENTIAL would go on at PUBLIC, where a reset or a restore set it."""
    session = opened(host)
    host.raise_taint(session_id=session.session_id, taint=CONFIDENTIAL)
    clock.advance(seconds=seconds)
    if is_used:
        session.observe("GetMemory", key="plan")

    end(service)

    for _ in range(2):
        assert refusal(host.renew_session, session_id=session.session_id) == NO_SESSION
        assert refusal(session.save_memory, key="plan", content="a secret") in {INVALID, EXPIRED}
        clock.advance(seconds=OVER)


def test_a_session_that_closed_itself_is_not_renewed(host):
    session = opened(host)
    session.close_session()

    assert refusal(host.renew_session, session_id=session.session_id) == NO_SESSION


def test_a_session_that_has_expired_cannot_close_itself(host, clock):
    """Whether or not the server remembers its token."""
    remembered, other = opened(host), opened(host)
    remembered.get_session()
    clock.advance(seconds=OVER)

    assert {refusal(session.close_session) for session in (remembered, other)} == {EXPIRED}
    for session in (remembered, other):
        assert renewed(host, session)


def test_the_session_of_a_reset_lasts_as_long_as_the_one_before_was_renewed_for(host, stopped):
    """Not as long as that has lasted in all."""
    session = opened(host)
    for _ in range(3):
        pass_time(stopped, 50)
        renewed(host, session, ttl={"seconds": 90})

    anew = host.reset_session(session_id=session.session_id).session

    assert left(anew, stopped) == timedelta(seconds=90)


RESET = (
    "UPDATE vault.session SET close_time = vault.clock() + interval '1 microsecond' WHERE session_id = %s",
    "UPDATE vault.conversation SET taint = 1",
)
RENEWAL = (
    "UPDATE vault.session SET expire_time = vault.clock() + interval '1 day', close_time = NULL WHERE session_id = %s",
)


@pytest.mark.parametrize(
    ("first", "rpc", "outcome"), [(RESET, "RenewSession", "SESSION_NOT_FOUND"), (RENEWAL, "ResetSession", "")]
)
def test_a_renewal_beside_a_reset_is_before_it_or_fails(service, host, clock, first, rpc, outcome):
    """Whoever waits for the other sees what it has committed."""
    session = opened(host, CONFIDENTIAL)
    clock.advance(seconds=OVER)
    assert refusal(session.get_session) == EXPIRED
    named = session if rpc == "RenewSession" else opened(host, CONFIDENTIAL)
    with service.database.as_owner() as owner, owner.transaction():
        lock_rows(owner, "vault.conversation", "conversation_id = %s", "chat")
        thread, outcomes = in_background(host.observe, rpc=rpc, session_id=named.session_id)
        wait_until_blocked(service)
        for statement in first:
            owner.execute(statement.encode(), [session.session_id] if "%s" in statement else [])
    thread.join()

    assert [reason_of(each) for each in outcomes] == [outcome]
    assert refusal(session.save_memory, key="plan", content="a secret") in {INVALID, EXPIRED}


# Who may renew


def test_a_key_renews_what_it_may_get(service, host, clock):
    """A session of a conversation above its ceiling, or of an agent that it does not know, does not exist for it."""
    service.host().create_agent(agent_id="known", known_from=PUBLIC)
    low = service.host(ceiling=INTERNAL)
    own = low.session(low.open_session(agent_id="known", conversation_id="chat", ttl=MINUTE))
    theirs = host.session(host.open_session(agent_id="known", conversation_id="high", taint=PUBLIC, ttl=MINUTE))
    unknown = opened(host)
    clock.advance(seconds=OVER)

    assert renewed(low, own).ceiling == INTERNAL
    for session in (theirs, unknown):
        assert refusal(low.renew_session, session_id=session.session_id) == NO_SESSION
    assert own.get_session().session.taint == PUBLIC
    assert renewed(host, theirs).ceiling == RESTRICTED


def test_a_session_renews_nothing(host):
    session = opened(host)

    assert refusal(session.renew_session, session_id=session.session_id) == "PERMISSION_DENIED PRINCIPAL_NOT_ALLOWED"


def test_another_tenant_renews_nothing(service, host):
    session = opened(host)

    other = service.host(tenant="other")
    assert refusal(other.renew_session, session_id=session.session_id) == NO_SESSION


def test_a_key_that_is_cut_off_renews_nothing(service, host):
    session = opened(host)
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET revoke_time = vault.clock()")

    assert refusal(host.renew_session, session_id=session.session_id) == INVALID
    assert session.get_session().session.taint == Classification.PUBLIC


def test_a_session_of_a_call_of_a_host_is_not_renewed(service, host):
    """Such as that of UndeleteItem. Hosts see its id in the audit log."""
    opened(host).save_memory(key="plan", content="text")
    opened(host).delete_memory(key="plan")
    host.undelete_item(agent_id="alice", kind=1, name="plan", classification=PUBLIC)
    [own] = {event.session_id for event in events(host) if event.method == "UndeleteItem"} - {""}
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.session SET close_time = NULL WHERE session_id = %s", [own])

    assert refusal(host.renew_session, session_id=own) == NO_SESSION
