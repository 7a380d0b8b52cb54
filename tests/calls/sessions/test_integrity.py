"""Integrity, the second half of a label: what a trusted conversation is, and what ends it."""

from __future__ import annotations

import pytest

from muniment.v1.session_pb2 import ConversationTainted
from muniment_server.background.sealer import BEGINNING, seal_tenant, tenants
from muniment_server.domain.classification import Label
from muniment_server.postgres import roles
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, detail, events, invalid, keys, refusal
from tests.support.integrity import (
    TRUSTED,
    UNTRUSTED,
    fields_of,
    label_of,
    of_item,
    open_session,
    saved_label,
    taint_of,
)
from tests.support.labels import FLOWS, trusted, untrusted
from tests.support.services import failure_of, reason_of

TAINTED = "FAILED_PRECONDITION CONVERSATION_TAINTED"
LABELS = [pytest.param(label, id=label.name) for label in Label]
OF_TRUSTED = [pytest.param(label, id=label.name) for label in Label if label.name.endswith("_TRUSTED")]


# OpenSession


@pytest.mark.parametrize("fields", [{}, {"integrity": UNTRUSTED}, {"taint": INTERNAL}])
def test_who_does_not_ask_is_untrusted(host, alice, fields):
    opened = open_session(host, **fields)

    assert opened.session.integrity == UNTRUSTED
    assert taint_of(host, opened) == saved_label(host, opened) == label_of(opened.session)


@pytest.mark.parametrize("label", OF_TRUSTED)
def test_a_host_opens_a_trusted_conversation(host, alice, label):
    opened = open_session(host, **fields_of(label))

    assert label_of(opened.session) is label
    assert label_of(host.session(opened).get_session().session) is label
    assert [label_of(each) for each in host.list_sessions(agent_id="alice").sessions] == [label]
    assert saved_label(host, opened) is label


def test_a_trusted_conversation_begins_at_public(host, alice):
    assert label_of(open_session(host, integrity=TRUSTED).session) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("integrity", [2, -1, 2**31 - 1])
def test_an_unknown_integrity_is_refused(host, alice, integrity):
    opened = open_session(host, integrity=TRUSTED)
    own = {"session_id": opened.session.session_id}

    assert invalid(open_session, host=host, integrity=integrity) == ["integrity"]
    assert invalid(host.raise_taint, **own, taint=PUBLIC, integrity=integrity) == ["integrity"]
    assert invalid(host.reset_session, **own, integrity=integrity) == ["integrity"]
    assert taint_of(host, opened) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("asked", LABELS)
@pytest.mark.parametrize("mark", LABELS)
def test_a_conversation_is_opened_at_its_label_or_where_that_may_flow(host, alice, mark, asked):
    """A call that opens nothing raises nothing: neither half."""
    first = open_session(host, **fields_of(mark))
    if mark in FLOWS[asked]:
        opened = open_session(host, **fields_of(asked))
        assert label_of(opened.session) is asked
        assert taint_of(host, first) is asked
        assert saved_label(host, first) is asked
    else:
        refused = failure_of(open_session, host=host, **fields_of(asked))
        assert reason_of(refused) == "CONVERSATION_TAINTED"
        assert label_of(detail(refused, ConversationTainted)) is mark
        assert taint_of(host, first) is mark
        assert len(host.list_sessions(agent_id="alice").sessions) == 1


@pytest.mark.parametrize("label", OF_TRUSTED)
def test_without_a_taint_the_integrity_counts_alone(host, alice, label):
    first = open_session(host, **fields_of(label))
    assert label_of(open_session(host, integrity=TRUSTED).session) is label

    second = open_session(host)

    assert (label_of(second.session), taint_of(host, first)) == (untrusted(label.level), untrusted(label.level))
    assert refusal(open_session, host=host, integrity=TRUSTED) == TAINTED


def test_a_name_that_is_free_begins_a_new_conversation(host, alice):
    first = open_session(host, integrity=TRUSTED)
    open_session(host, conversation_id="other")

    assert taint_of(host, first) is Label.PUBLIC_TRUSTED


@pytest.mark.parametrize("integrity", [UNTRUSTED, TRUSTED])
def test_what_is_above_a_ceiling_raises_neither_half(shared, tenant, host, integrity):
    """Of the agent, of the conversation, of the key."""
    host.create_agent(agent_id="alice", ceiling=CONFIDENTIAL, known_from=PUBLIC)
    limited = shared.host(tenant, INTERNAL)
    opened = open_session(limited, integrity=TRUSTED)
    own = {"session_id": opened.session.session_id}
    high = {"integrity": integrity}

    assert {
        refusal(open_session, host=host, taint=RESTRICTED, **high),
        refusal(host.raise_taint, **own, taint=RESTRICTED, **high),
    } == {"PERMISSION_DENIED AGENT_CEILING_EXCEEDED"}
    assert {
        refusal(open_session, host=host, taint=CONFIDENTIAL, **high),
        refusal(host.raise_taint, **own, taint=CONFIDENTIAL, **high),
    } == {"PERMISSION_DENIED CONVERSATION_CEILING_EXCEEDED"}
    assert {
        refusal(open_session, host=limited, taint=CONFIDENTIAL, **high),
        refusal(limited.raise_taint, **own, taint=CONFIDENTIAL, **high),
    } == {"PERMISSION_DENIED CEILING_EXCEEDED"}
    assert taint_of(host, opened) is Label.PUBLIC_TRUSTED


# RaiseTaint


@pytest.mark.parametrize("asked", LABELS)
@pytest.mark.parametrize("mark", LABELS)
def test_a_raise_raises_either_half_or_both_and_never_back(host, alice, mark, asked):
    opened = open_session(host, **fields_of(mark))
    other = open_session(host, **fields_of(mark))
    both_are_trusted = {mark, asked} <= FLOWS[Label.RESTRICTED_TRUSTED]
    expected = (trusted if both_are_trusted else untrusted)(max(mark.level, asked.level))

    raised = host.raise_taint(session_id=opened.session.session_id, **fields_of(asked)).session

    assert label_of(raised) is expected
    assert [taint_of(host, each) for each in (opened, other)] == [expected] * 2
    assert [saved_label(host, each) for each in (opened, other)] == [expected] * 2


def test_a_raise_that_names_no_integrity_taints(host, alice):
    opened = open_session(host, **fields_of(Label.CONFIDENTIAL_TRUSTED))

    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)

    assert taint_of(host, opened) is Label.CONFIDENTIAL


def test_once_tainted_a_conversation_is_trusted_by_a_reset_only(host, alice):
    opened = open_session(host, integrity=TRUSTED)
    own = {"session_id": opened.session.session_id}
    host.raise_taint(**own, taint=PUBLIC)
    host.raise_taint(**own, taint=RESTRICTED, integrity=TRUSTED)

    assert taint_of(host, opened) is Label.RESTRICTED
    assert refusal(open_session, host=host, taint=RESTRICTED, integrity=TRUSTED) == TAINTED
    host.close_session(**own)
    assert refusal(open_session, host=host, taint=RESTRICTED, integrity=TRUSTED) == TAINTED


def test_after_a_raise_a_session_sees_what_is_untrusted_and_writes_beside_what_is_trusted(host, alice, at):
    """The token stays. What it wrote before stays trusted."""
    at(Label.PUBLIC).save_memory(key="mail", content="buy now")
    opened = open_session(host, integrity=TRUSTED)
    session = host.session(opened)
    session.save_memory(key="plan", content="trusted plan")
    assert refusal(session.get_memory, key="mail") == "NOT_FOUND MEMORY_NOT_FOUND"

    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)

    assert session.get_memory(key="mail").memory.content == "buy now"
    assert of_item(session.save_memory(key="plan", content="spoiled plan").memory) is Label.PUBLIC
    assert at(Label.PUBLIC_TRUSTED).get_memory(key="plan").memory.content == "trusted plan"


def test_a_page_token_of_before_the_raise_is_stale(host, alice):
    """Half of the list would be that of another label."""
    opened = open_session(host, integrity=TRUSTED)
    session = host.session(opened)
    for key in "abc":
        session.save_memory(key=key, content="text")
    token = session.list_memories(page_size=1).next_page_token
    assert keys(session.list_memories(page_size=1, page_token=token)) == ["b"]

    host.raise_taint(session_id=opened.session.session_id, taint=PUBLIC)

    assert reason_of(failure_of(session.list_memories, page_size=1, page_token=token)) == "TAINT_CHANGED"


# ResetSession


@pytest.mark.parametrize("integrity", [UNTRUSTED, TRUSTED])
@pytest.mark.parametrize("mark", LABELS)
def test_a_reset_begins_at_public_with_the_integrity_that_is_asked_for(host, alice, mark, integrity):
    old = open_session(host, **fields_of(mark))

    new = host.reset_session(session_id=old.session.session_id, integrity=integrity)

    expected = Label.PUBLIC_TRUSTED if integrity is TRUSTED else Label.PUBLIC
    assert label_of(new.session) is expected
    assert (taint_of(host, new), saved_label(host, new)) == (expected, expected)
    assert refusal(host.session(old).get_session) == "UNAUTHENTICATED CREDENTIAL_INVALID"


def test_a_reset_that_names_no_integrity_is_untrusted(host, alice):
    old = open_session(host, integrity=TRUSTED)

    assert label_of(host.reset_session(session_id=old.session.session_id).session) is Label.PUBLIC


# What hosts see


def test_audit_events_have_the_integrity_of_the_session(host, alice):
    opened = open_session(host, **fields_of(Label.CONFIDENTIAL_TRUSTED))
    session = host.session(opened)
    session.save_memory(key="plan", content="text")
    session.get_memory(key="plan")
    host.raise_taint(session_id=opened.session.session_id, taint=CONFIDENTIAL)
    session.save_memory(key="plan", content="text")

    found = events(host, agent_id="alice", session_id=opened.session.session_id)
    assert [(event.method, of_item(event)) for event in found] == [
        ("OpenSession", Label.CONFIDENTIAL_TRUSTED),
        ("SaveMemory", Label.CONFIDENTIAL_TRUSTED),
        ("GetMemory", Label.CONFIDENTIAL_TRUSTED),
        ("RaiseTaint", Label.CONFIDENTIAL),
        ("SaveMemory", Label.CONFIDENTIAL),
    ]


def test_what_a_host_does_to_a_trusted_session_says_so(host, alice):
    old = open_session(host, **fields_of(Label.INTERNAL_TRUSTED))
    host.raise_taint(session_id=old.session.session_id, **fields_of(Label.CONFIDENTIAL_TRUSTED))
    new = host.reset_session(session_id=old.session.session_id, integrity=TRUSTED)
    host.close_session(session_id=new.session.session_id)
    host.session(open_session(host, conversation_id="other", integrity=TRUSTED)).close_session()
    host.reset_session(session_id=open_session(host).session.session_id)

    done = [event for event in events(host, agent_id="alice") if event.method != "CreateAgent"]
    assert sorted(((event.method, event.outcome, of_item(event)) for event in done), key=str) == sorted(
        [
            ("OpenSession", "OK", Label.INTERNAL_TRUSTED),
            ("RaiseTaint", "OK", Label.CONFIDENTIAL_TRUSTED),
            ("ResetSession", "CLOSED", Label.CONFIDENTIAL_TRUSTED),
            ("ResetSession", "OK", Label.PUBLIC_TRUSTED),
            ("CloseSession", "OK", Label.PUBLIC_TRUSTED),
            ("OpenSession", "OK", Label.PUBLIC_TRUSTED),
            ("CloseSession", "OK", Label.PUBLIC_TRUSTED),
            ("OpenSession", "OK", Label.PUBLIC),
            ("ResetSession", "CLOSED", Label.PUBLIC),
            ("ResetSession", "OK", Label.PUBLIC),
        ],
        key=str,
    )


def test_a_raise_is_recorded_if_it_raises_either_half_and_only_then(host, alice):
    opened = open_session(host, **fields_of(Label.INTERNAL_TRUSTED))
    own = {"session_id": opened.session.session_id}

    def raises() -> int:
        return sum(event.method == "RaiseTaint" for event in events(host, **own))

    counts = []
    for asked in (Label.PUBLIC_TRUSTED, Label.INTERNAL_TRUSTED, Label.PUBLIC, Label.INTERNAL, Label.RESTRICTED_TRUSTED):
        host.raise_taint(**own, **fields_of(asked))
        counts.append(raises())
    assert counts == [0, 0, 1, 1, 2]


def test_each_label_has_a_chain_of_seals(service):
    """Of one level, what trusted sessions did is sealed apart."""
    for label in (Label.PUBLIC, Label.CONFIDENTIAL_TRUSTED):
        for number in range(label.value):
            service.session(label, conversation_id=label.name).save_memory(key=f"{number}", content="text")
    with service.database.connect(roles.AUDITOR) as auditor:
        for tenant in tenants(auditor):
            list(seal_tenant(auditor, tenant, BEGINNING))
    host = service.host()
    checkpoints = {
        label: host.get_audit_checkpoint(classification=label.level, integrity=label.integrity).checkpoint
        for label in Label
    }

    written = Label.CONFIDENTIAL_TRUSTED.value
    assert [of_item(checkpoint) for checkpoint in checkpoints.values()] == list(Label)
    assert checkpoints[Label.CONFIDENTIAL_TRUSTED].event_count == 2 * written  # each session was opened, and wrote once
    assert checkpoints[Label.CONFIDENTIAL].event_count == 0
    assert [checkpoints[label].event_count for label in (Label.PUBLIC_TRUSTED, Label.RESTRICTED)] == [0, 0]
    assert host.get_audit_checkpoint(classification=CONFIDENTIAL).checkpoint == checkpoints[Label.CONFIDENTIAL]
