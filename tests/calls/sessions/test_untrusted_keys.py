"""Host keys for untrusted sessions: they have sessions of their own, and nothing else."""

from __future__ import annotations

import psycopg
import pytest

from muniment_server.domain.classification import Integrity, Label
from tests.rpcs import RPCS, World
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, events, refusal
from tests.support.canaries import new_canary
from tests.support.integrity import (
    TRUSTED,
    open_session,
    saved_label,
    taint_of,
)
from tests.support.methods import FOR_BOTH, FOR_HOSTS, POLICIES
from tests.support.services import Caller, new_host_key, reason_of


@pytest.fixture
def bound(shared, tenant) -> Caller:
    """A host whose key was made with `--integrity untrusted`."""
    return Caller(shared.channel, new_host_key(shared.database, tenant, RESTRICTED, integrity=Integrity.UNTRUSTED))


@pytest.mark.parametrize("rpc", sorted(FOR_HOSTS | FOR_BOTH))
def test_an_untrusted_key_manages_sessions_and_nothing_else(host, bound, rpc):
    word = new_canary()
    World(word).fill_agents(host)
    opened = bound.open_session(agent_id=word)
    world = World(word, opened.session.session_id)
    world.fill(bound.session(opened), "text")

    refused = reason_of(bound.observe(rpc, **RPCS[rpc].request(world)))

    assert refused == ("" if POLICIES[rpc].service == "SessionService" else "PRINCIPAL_NOT_ALLOWED")


def test_an_untrusted_key_makes_nothing_trusted(host, bound, alice):
    own = open_session(bound)
    named = {"session_id": own.session.session_id}
    refused = [
        refusal(open_session, host=bound, conversation_id="another", integrity=TRUSTED),
        refusal(bound.raise_taint, **named, taint=INTERNAL, integrity=TRUSTED),
        refusal(bound.reset_session, **named, integrity=TRUSTED),
    ]

    assert refused == ["PERMISSION_DENIED INTEGRITY_EXCEEDED"] * 3
    assert taint_of(host, own) is Label.PUBLIC
    rows = [(event.method, event.agent_id, event.session_id) for event in events(host) if event.outcome != "OK"]
    session_id = own.session.session_id
    methods = [("OpenSession", ""), ("RaiseTaint", session_id), ("ResetSession", session_id)]
    assert rows == [(method, "alice", session) for method, session in methods]


def test_an_untrusted_key_neither_sees_nor_taints_nor_ends_what_others_have_opened(host, bound, alice):
    """A tainted planner would go on with what untrusted contexts wrote."""
    plan = open_session(host, integrity=TRUSTED)
    named = {"session_id": plan.session.session_id}

    assert {
        refusal(bound.raise_taint, **named, taint=INTERNAL),
        *(refusal(rpc, **named) for rpc in (bound.reset_session, bound.close_session, bound.get_session)),
    } == {"NOT_FOUND SESSION_NOT_FOUND"}
    assert list(bound.list_sessions(agent_id="alice", include_closed=True).sessions) == []
    assert taint_of(host, plan) is saved_label(host, plan) is Label.PUBLIC_TRUSTED

    host.raise_taint(**named, taint=PUBLIC)
    assert refusal(bound.get_session, **named) == "NOT_FOUND SESSION_NOT_FOUND"
    assert list(bound.list_sessions(agent_id="alice", include_closed=True).sessions) == []


def test_an_untrusted_key_neither_learns_of_conversations_nor_takes_their_names(host, bound, alice):
    """Names of conversations can be guessed. Whether others have one, and with which label, changes no answer."""
    open_session(host, conversation_id="trusted", integrity=TRUSTED)
    open_session(host, conversation_id="confidential", taint=CONFIDENTIAL)
    names = ("trusted", "confidential", "free")
    opened = [open_session(bound, conversation_id=name) for name in names]

    assert [each.session.conversation_id for each in opened] == [*names]
    assert {taint_of(bound, each) for each in opened} == {Label.PUBLIC}
    assert taint_of(host, open_session(host, conversation_id="free", integrity=TRUSTED)) is Label.PUBLIC_TRUSTED
    assert [host.get_session(session_id=each.session.session_id).session.conversation_id for each in opened] == [
        f"~{name}" for name in names
    ]


@pytest.mark.parametrize("name", ["own", ""])
def test_an_untrusted_key_goes_on_with_its_own_conversations(bound, alice, name):
    begun = open_session(bound, conversation_id=name, taint=INTERNAL).session
    assert not begun.conversation_id.startswith("~")

    again = open_session(bound, conversation_id=begun.conversation_id, taint=0)
    assert (again.session.conversation_id, again.session.taint) == (begun.conversation_id, INTERNAL)
    assert bound.session(again).get_session().session.conversation_id == begun.conversation_id


def test_an_untrusted_key_does_not_taint_its_own_conversation_once_that_is_trusted(host, bound, alice):
    own = open_session(bound)
    trusted = host.reset_session(session_id=own.session.session_id, integrity=TRUSTED)

    assert refusal(open_session, host=bound) == "PERMISSION_DENIED INTEGRITY_EXCEEDED"
    assert taint_of(host, trusted) is Label.PUBLIC_TRUSTED


def test_the_database_has_no_untrusted_key_that_manages_agents(shared, tenant, host):
    with shared.database.as_owner() as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute("UPDATE vault.host_key SET trusted = FALSE")
