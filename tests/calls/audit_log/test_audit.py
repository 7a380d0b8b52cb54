"""What is recorded, and what never is."""

from __future__ import annotations

import uuid

import pytest

from muniment_server.monitor.session_scope import SessionScope
from muniment_server.runtime.configuration import ConfigError, DatabaseConfig, ServerConfig
from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PAIRS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    in_future,
    pages,
    refusal,
)
from tests.support.services import failure_of, serving

AUDIT_TABLES = [f"muniment_{name}.audit" for name in ("public", "internal", "confidential", "restricted", "control")]


def recorded(host, method):
    """(level, outcome) of every event of a method."""
    return [(event.classification, event.outcome) for event in events(host) if event.method == method]


@pytest.mark.parametrize("level", LEVELS)
def test_each_write_is_one_event_at_the_level_of_the_session(at, host, level):
    session = at(level)
    session.save_memory(key="plan", content="one")
    session.save_memory(key="plan", content="two")
    session.delete_memory(key="plan")

    found = [event for event in events(host) if event.session_id == session.session_id and event.kind]

    assert [(event.method, event.classification, event.outcome, event.kind, event.revision) for event in found] == [
        ("SaveMemory", level, "OK", 1, 1),
        ("SaveMemory", level, "OK", 1, 2),
        ("DeleteMemory", level, "OK", 1, 2),
    ]
    assert len({event.item_id for event in found}) == 1
    assert {event.agent_id for event in found} == {"alice"}


@pytest.mark.parametrize("level", LEVELS)
def test_reads_are_recorded_from_confidential_up_and_not_below(at, host, level):
    session = at(level)
    session.save_memory(key="plan", content="whale")
    session.save_memory(key="other", content="whale")
    session.get_memory(key="plan")
    failure_of(session.get_memory, key="never")
    session.list_memories()
    session.list_memories(page_size=1)
    session.search_memories(query="whale zebra")
    session.search_memories(query="zebra")

    reads = ("GetMemory", "ListMemories", "SearchMemories")
    found = [(event.method, event.result_count) for event in events(host) if event.method in reads]

    assert found == (
        []
        if level < CONFIDENTIAL
        else [
            ("GetMemory", 1), ("GetMemory", 0), ("ListMemories", 2), ("ListMemories", 1), ("SearchMemories", 2),
            ("SearchMemories", 0),
        ]
    )  # fmt: skip


def test_a_read_of_one_memory_names_its_version(at, host):
    at(CONFIDENTIAL).save_memory(key="plan", content="one")
    at(CONFIDENTIAL).save_memory(key="plan", content="two")
    at(CONFIDENTIAL).get_memory(key="plan")

    *_, written, read = [event for event in events(host) if event.kind]

    assert (read.method, read.item_id, read.revision, read.kind) == ("GetMemory", written.item_id, 2, 1)


@pytest.mark.parametrize("start", [PUBLIC, INTERNAL, CONFIDENTIAL])
def test_reads_below_may_be_recorded_too(database, start):
    with serving(database, audit_reads_from=start) as service:
        for level in LEVELS:
            service.session(level).list_memories()
        found = {event.classification for event in events(service.host()) if event.method == "ListMemories"}

    assert found == {level for level in LEVELS if level >= start}


def test_reads_from_confidential_up_are_recorded_whatever_the_server_is_given(database):
    """The monitor's own guard, behind that of the configuration."""
    with serving(database, audit_reads_from=RESTRICTED) as service:
        service.session(CONFIDENTIAL).list_memories()
        found = {event.classification for event in events(service.host()) if event.method == "ListMemories"}

    assert found == {CONFIDENTIAL}


def test_configuration_can_only_widen_what_is_recorded(tmp_path):
    with pytest.raises(ConfigError, match="or a lower level"):
        ServerConfig(DatabaseConfig(tmp_path), audit_reads_from=RESTRICTED)


def test_a_stale_etag_is_recorded(at, host):
    stale = at(INTERNAL).save_memory(key="plan", content="1").memory.etag
    at(INTERNAL).save_memory(key="plan", content="2")
    failure_of(at(INTERNAL).save_memory, key="plan", content="3", etag=stale)
    failure_of(at(INTERNAL).delete_memory, key="plan", etag=stale)

    assert recorded(host, "SaveMemory") == [(INTERNAL, "OK"), (INTERNAL, "OK"), (INTERNAL, "ETAG_STALE")]
    assert recorded(host, "DeleteMemory") == [(INTERNAL, "ETAG_STALE")]


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_delete_at_the_wrong_level_is_recorded(at, host, low, high):
    at(low).save_memory(key="plan", content="low")
    failure_of(at(high).delete_memory, key="plan")

    assert recorded(host, "DeleteMemory") == [(high, "WRITE_LEVEL_MISMATCH")]


@pytest.mark.parametrize(("ceiling", "taint"), UP)
def test_a_call_above_the_ceiling_is_recorded(shared, tenant, host, session, ceiling, taint):
    own = session(PUBLIC)
    limited = shared.host(tenant, ceiling)
    failure_of(limited.open_session, agent_id="alice", taint=taint)
    failure_of(limited.raise_taint, session_id=own.session_id, taint=taint)

    assert recorded(host, "OpenSession") == [(PUBLIC, "OK"), (taint, "CEILING_EXCEEDED")]
    assert recorded(host, "RaiseTaint") == [(taint, "CEILING_EXCEEDED")]


def test_a_conversation_opened_too_low_is_recorded_at_its_taint(host, session):
    session(RESTRICTED, conversation_id="c")
    failure_of(host.open_session, agent_id="alice", taint=PUBLIC, conversation_id="c")

    assert recorded(host, "OpenSession") == [(RESTRICTED, "OK"), (RESTRICTED, "CONVERSATION_TAINTED")]


@pytest.mark.parametrize("level", LEVELS)
def test_the_wrong_principal_is_recorded(at, host, level):
    session = at(level)
    failure_of(session.list_agents)
    failure_of(host.list_memories)

    found = {event.method: event for event in events(host) if event.outcome == "PRINCIPAL_NOT_ALLOWED"}

    assert set(found) == {"ListAgents", "ListMemories"}
    assert (found["ListAgents"].session_id, found["ListAgents"].classification) == (session.session_id, level)
    assert (found["ListMemories"].classification, found["ListMemories"].session_id) == (RESTRICTED, "")
    assert found["ListMemories"].host_key_id


def test_bad_input_and_bad_tokens_are_not_recorded(at, host):
    at(PUBLIC)
    before = events(host)
    failure_of(at(PUBLIC).save_memory, key="", content="")
    failure_of(at(PUBLIC).list_memories, page_token="x")
    failure_of(at(PUBLIC).get_memory, key="never")
    failure_of(host.get_agent, agent_id="never")
    failure_of(host.open_session, agent_id="alice", taint=5)

    assert events(host) == before


def test_what_hosts_do_is_recorded(host):
    host.create_agent(agent_id="alice")
    host.update_agent(agent_id="alice", display_name="A")
    opened = host.open_session(agent_id="alice", taint=INTERNAL).session
    host.raise_taint(session_id=opened.session_id, taint=CONFIDENTIAL, reason="why")
    new = host.reset_session(session_id=opened.session_id, reason="clean").session
    host.close_session(session_id=new.session_id)
    host.delete_agent(agent_id="alice")

    found = events(host)
    reset = [event for event in found if event.method == "ResetSession"]

    assert [(each.method, each.classification, each.outcome) for each in found if each not in reset] == [
        *[("CreateAgent", PUBLIC, "OK")] * 4,  # the agent, and its first blocks
        ("UpdateAgent", PUBLIC, "OK"),
        ("OpenSession", INTERNAL, "OK"),
        ("RaiseTaint", CONFIDENTIAL, "OK"),
        ("CloseSession", PUBLIC, "OK"),
        ("DeleteAgent", PUBLIC, "OK"),
    ]
    assert {(each.session_id, each.classification, each.outcome) for each in reset} == {
        (opened.session_id, CONFIDENTIAL, "CLOSED"),
        (new.session_id, PUBLIC, "OK"),
    }
    assert len({event.host_key_id for event in found}) == 1


def test_what_changes_nothing_is_not_recorded(host, session):
    own = session(INTERNAL)
    before = events(host)
    host.raise_taint(session_id=own.session_id, taint=INTERNAL)
    host.raise_taint(session_id=own.session_id, taint=PUBLIC)

    assert events(host) == before


def test_a_session_that_closes_itself_is_recorded_without_a_host(host, session):
    own = session(INTERNAL)
    own.close_session()
    last = events(host)[-1]

    assert (last.method, last.session_id, last.host_key_id) == ("CloseSession", own.session_id, "")


@pytest.mark.parametrize(("ceiling", "level"), PAIRS)
def test_events_above_the_ceiling_are_not_listed(shared, tenant, at, ceiling, level):
    at(level).save_memory(key="plan", content="text")
    shared.lower("alice", ceiling, tenant)
    found = [event for event in events(shared.host(tenant, ceiling)) if event.method == "SaveMemory"]

    assert [event.classification for event in found] == ([level] if level <= ceiling else [])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_events_are_listed_newest_first_in_pages(at, host, size):
    for number in range(7):
        at(LEVELS[number % 4]).save_memory(key="plan", content=str(number))

    listed = [event for page in pages(host.list_audit_events, page_size=size) for event in page.audit_events]

    assert listed == events(host)[::-1]
    assert len({event.event_id for event in listed}) == len(listed)
    times = [event.time.ToDatetime() for event in listed]
    assert times == sorted(times, reverse=True)


def test_events_are_filtered_by_agent_session_and_time(host, session):
    one, two = session(PUBLIC, agent_id="one"), session(PUBLIC, agent_id="two")
    for own in (one, two, one):
        own.save_memory(key="plan", content=str(uuid.uuid4()))
    saves = [event for event in events(host) if event.method == "SaveMemory"]

    assert {event.agent_id for event in events(host, agent_id="one")} == {"one"}
    assert {event.session_id for event in events(host, session_id=two.session_id)} == {two.session_id}
    assert events(host, start_time=saves[0].time, end_time=saves[2].time) == saves[:2]


@pytest.mark.parametrize(
    "other",
    [
        {"agent_id": "bob"}, {"session_id": str(uuid.uuid4())}, {"start_time": in_future(days=-1)},
        {"end_time": in_future(days=1)},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_a_page_token_of_audit_events_is_for_its_filter_only(at, host, other):
    at(PUBLIC).save_memory(key="plan", content="text")
    token = host.list_audit_events(page_size=1).next_page_token
    assert len(host.list_audit_events(page_size=1, page_token=token).audit_events) == 1

    refused = refusal(host.list_audit_events, page_size=1, page_token=token, **other)

    assert refused == "INVALID_ARGUMENT PAGE_TOKEN_INVALID"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("ceiling", LEVELS[:-1])
def test_a_host_below_the_highest_ceiling_gets_no_checkpoint(shared, tenant, ceiling, level):
    """A seal covers the events of all agents, also those that do not exist for the host."""
    host = shared.host(tenant, ceiling)

    assert refusal(host.get_audit_checkpoint, classification=level) == "PERMISSION_DENIED CEILING_EXCEEDED"


def test_no_audit_row_no_effect(service):
    """The insert of the audit row is made to fail: the write fails, and nothing changed."""
    session = service.session(PUBLIC)
    before = session.save_memory(key="plan", content="one").memory
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_public.audit FROM muniment_public")

    answers = [
        refusal(session.save_memory, key="plan", content="two"),
        refusal(session.save_memory, key="new", content="two"),
        refusal(session.delete_memory, key="plan"),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 3
    assert list(session.list_memories().memories) == [before]
    with service.database.as_owner() as owner:
        assert owner.execute("SELECT count(*) FROM muniment_public.revision WHERE kind = 1").fetchone() == (1,)


def test_a_read_that_cannot_be_recorded_is_not_answered(service):
    session = service.session(CONFIDENTIAL)
    session.save_memory(key="plan", content="whale")
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_confidential.audit FROM muniment_confidential")

    answers = [
        refusal(session.get_memory, key="plan"),
        refusal(session.list_memories),
        refusal(session.search_memories, query="whale"),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 3


def test_a_read_of_a_session_that_ends_before_it_is_recorded_is_not_answered(service, monkeypatch):
    session, host = service.session(CONFIDENTIAL), service.host()
    session.save_memory(key="plan", content="whale")
    record_read = SessionScope.record_read

    def record_late(scope, *shown):
        host.close_session(session_id=session.session_id)
        record_read(scope, *shown)

    monkeypatch.setattr(SessionScope, "record_read", record_late)

    assert refusal(session.get_memory, key="plan") == "UNAUTHENTICATED CREDENTIAL_INVALID"


def test_no_audit_row_no_act_of_a_host(service):
    host = service.host()
    own = service.session(PUBLIC)
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_control.audit FROM muniment_control")

    answers = [
        refusal(host.create_agent, agent_id="bob"),
        refusal(host.update_agent, agent_id="alice", display_name="x"),
        refusal(host.delete_agent, agent_id="alice"),
        refusal(host.open_session, agent_id="alice", taint=PUBLIC, conversation_id="new"),
        refusal(host.raise_taint, session_id=own.session_id, taint=RESTRICTED),
        refusal(host.reset_session, session_id=own.session_id),
        refusal(host.close_session, session_id=own.session_id),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 7
    assert [agent.agent_id for agent in host.list_agents().agents] == ["alice"]
    assert host.get_agent(agent_id="alice").agent.display_name == ""
    assert own.get_session().session.taint == PUBLIC
    assert len(host.list_sessions(agent_id="alice", include_closed=True).sessions) == 1


def test_no_column_of_the_audit_holds_what_was_remembered(service):
    """Nor a hash of it: there is no column for one."""
    canary = f"CANARY-{uuid.uuid4()}"
    for level in LEVELS:
        session = service.session(level)
        stale = session.save_memory(key=canary, content=canary, tags=[canary]).memory.etag
        session.save_memory(key=canary, content=canary + "2", tags=[canary])
        failure_of(session.save_memory, key=canary, content=canary, etag=stale)
        session.get_memory(key=canary)
        session.search_memories(query=canary, tags=[canary])
        session.list_memories(tag=canary)
        session.delete_memory(key=canary)
        failure_of(session.delete_memory, key=canary)
    with service.database.as_owner() as owner:
        rows = [str(row) for table in AUDIT_TABLES for row in owner.execute(f"SELECT * FROM {table}".encode())]
        columns = owner.execute(
            "SELECT DISTINCT column_name FROM information_schema.columns"
            " WHERE table_name = 'audit' AND table_schema LIKE 'muniment%'"
        ).fetchall()

    assert len(rows) > 20
    assert [row for row in rows if canary in row] == []
    assert {name for (name,) in columns} == {
        "tenant", "agent", "level", "event_id", "time", "written_by", "session_id", "host_key_id", "method", "outcome",
        "kind", "item_id", "revision", "result_count", "reason", "trusted",
        "by_host", "chain",  # of the auditor's view
    }  # fmt: skip
