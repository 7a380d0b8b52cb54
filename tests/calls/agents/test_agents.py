"""AgentService."""

from __future__ import annotations

import pytest

from muniment.v1.agent_pb2 import Agent
from muniment_server.domain import text
from muniment_server.domain.classification import Label
from muniment_server.embedder.queue import START, embed_batch
from tests.support.answers import LEVELS, PUBLIC, RESTRICTED, events, invalid, keys, pages, refusal
from tests.support.concurrency import lock_rows
from tests.support.embedders import quick
from tests.support.erasing import erase_all
from tests.support.services import failure_of

NO_AGENT = "NOT_FOUND AGENT_NOT_FOUND"
SETTINGS = {"memory_enabled": False, "user_profile_enabled": False, "memory_char_limit": 0, "user_char_limit": 7}


def settings_of(agent: Agent) -> dict[str, object]:
    return {field.name: value for field, value in agent.memory_settings.ListFields()}


def test_an_agent_is_created_under_the_id_given(host):
    created = host.create_agent(agent_id="alice", display_name="Alice", language="ta-IN").agent

    assert (created.agent_id, created.display_name, created.language) == ("alice", "Alice", "ta-IN")
    assert created.create_time == created.update_time
    assert host.get_agent(agent_id="alice").agent == created


def test_an_agent_without_an_id_gets_one(host):
    made = [host.create_agent().agent.agent_id for _ in range(3)]

    assert len(set(made)) == 3
    assert [host.get_agent(agent_id=agent_id).agent.agent_id for agent_id in made] == made


def test_the_defaults_of_the_settings(host):
    assert settings_of(host.create_agent(agent_id="alice").agent) == {
        "memory_enabled": True,
        "user_profile_enabled": True,
        "memory_char_limit": 2200,
        "user_char_limit": 1375,
    }


def test_settings_that_are_given_are_kept_also_false_and_zero(host):
    assert settings_of(host.create_agent(agent_id="alice", memory_settings=SETTINGS).agent) == SETTINGS


@pytest.mark.parametrize("given", SETTINGS.items(), ids=list(SETTINGS))
def test_a_setting_that_is_absent_has_its_default_on_create_and_stays_on_update(host, given):
    name, value = given
    created = settings_of(host.create_agent(agent_id="alice", memory_settings={name: value}).agent)
    default = settings_of(host.create_agent(agent_id="bob").agent)
    updated = settings_of(host.update_agent(agent_id="bob", memory_settings={name: value}).agent)

    assert created == updated == default | {name: value}


@pytest.mark.parametrize("name", ["memory_char_limit", "user_char_limit"])
@pytest.mark.parametrize("limit", [-1, 1_000_001])
def test_a_limit_out_of_range_is_refused(host, name, limit):
    assert invalid(host.create_agent, agent_id="a", memory_settings={name: limit}) == [f"memory_settings.{name}"]


def test_an_id_that_is_taken_is_refused(host):
    host.create_agent(agent_id="alice")

    assert refusal(host.create_agent, agent_id="alice") == "ALREADY_EXISTS AGENT_EXISTS"


def test_ids_are_case_sensitive(host):
    host.create_agent(agent_id="alice")

    assert host.create_agent(agent_id="Alice").agent.agent_id == "Alice"


def test_two_tenants_may_have_an_agent_of_one_id_each(shared, host, tenant):
    host.create_agent(agent_id="alice", display_name="one")
    shared.host(tenant + "-other").create_agent(agent_id="alice", display_name="two")

    assert host.get_agent(agent_id="alice").agent.display_name == "one"


@pytest.mark.parametrize(
    "agent_id",
    [
        "a", "0", "a_b", "A" * 256, "alice@example.com", "o'brien+x@example.com", "auth0|64f1", "+4179123", "-100123",
        "19:meeting_abc@thread.tacv2", "@kim:matrix.org", "spiffe://example.org/ns/a?b#c", "-", "a%b", "a\\b", '<"&>',
        "用户42", "நினைவு", "émile", "🩷", "用" * 256,
    ],
)  # fmt: skip
def test_ids_of_people_are_ids_of_agents_and_conversations_wherever_they_go(host, session, agent_id):
    assert host.create_agent(agent_id=agent_id).agent.agent_id == agent_id
    opened = host.open_session(agent_id=agent_id, taint=PUBLIC, conversation_id=agent_id).session

    assert (opened.agent_id, opened.conversation_id) == (agent_id, agent_id)
    assert [each.conversation_id for each in host.list_sessions(agent_id=agent_id).sessions] == [agent_id]
    assert [each.agent_id for each in host.list_agents().agents] == [agent_id]
    assert {event.agent_id for event in events(host, agent_id=agent_id)} == {agent_id}
    host.delete_agent(agent_id=agent_id)
    assert refusal(host.get_agent, agent_id=agent_id) == NO_AGENT


def test_ids_that_look_alike_are_different(host):
    alike = ["alice", "Alice", "\u0430lice"]  # the last begins with a Cyrillic letter
    for agent_id in alike:
        host.create_agent(agent_id=agent_id)

    assert [each.agent_id for each in host.list_agents().agents] == sorted(alike, key=str.encode)


@pytest.mark.parametrize(
    ("agent_id", "rule"),
    [
        *((wrong, text.FORM_OF_IDS) for wrong in ("a b", " a", "a\n", "a\x7f", "~1", "~", "a\u3000b", "A" * 257)),
        ("e\u0301mile", "must be in Unicode's Normalization Form C"),
        ("a\u202eb", "must not contain control, format or unassigned characters"),
        ("a\u0378", "must not contain control, format or unassigned characters"),
    ],
)
def test_another_id_is_refused_and_the_error_names_the_form(host, agent_id, rule):
    for call in (host.create_agent, host.get_agent, host.update_agent, host.delete_agent):
        assert invalid(call, agent_id=agent_id) == ["agent_id"]
    refused = dict(failure_of(host.create_agent, agent_id=agent_id).trailers)["grpc-status-details-bin"]
    assert rule.encode() in refused


@pytest.mark.parametrize("language", ["x", "english!", "en_US", "en-", "e" * 9])
def test_a_language_is_a_tag(host, language):
    assert invalid(host.create_agent, agent_id="a", language=language) == ["language"]


@pytest.mark.parametrize("name", ["x" * 257, "a\nb", "a\0b"])
def test_a_display_name_is_256_code_points_of_plain_text(host, name):
    host.create_agent(agent_id="a")

    assert invalid(host.create_agent, agent_id="b", display_name=name) == ["display_name"]
    assert invalid(host.update_agent, agent_id="a", display_name=name) == ["display_name"]


def test_an_update_changes_what_is_given_and_keeps_the_rest(host):
    created = host.create_agent(agent_id="alice", display_name="Alice", language="ta", memory_settings=SETTINGS).agent
    updated = host.update_agent(agent_id="alice", display_name="A").agent

    assert updated.update_time.ToDatetime() > created.update_time.ToDatetime()
    created.display_name = "A"
    created.update_time.CopyFrom(updated.update_time)
    assert updated == created == host.get_agent(agent_id="alice").agent


def test_an_update_may_empty_a_text(host):
    host.create_agent(agent_id="alice", display_name="Alice", language="ta")
    updated = host.update_agent(agent_id="alice", display_name="", language="").agent

    assert (updated.display_name, updated.language) == ("", "")


@pytest.mark.parametrize("size", [1, 2, 3, 0])
def test_agents_are_listed_by_the_bytes_of_their_ids(host, size):
    names = ["b", "B", "a", "a.b", "a-b", "a_b", "10", "9"]
    for name in names:
        host.create_agent(agent_id=name)

    found = [agent.agent_id for page in pages(host.list_agents, page_size=size) for agent in page.agents]

    assert found == sorted(names)


@pytest.mark.parametrize("call", ["list_agents", "list_sessions", "list_audit_events"])
def test_a_negative_page_size_is_refused(host, call):
    fields = {"agent_id": "alice"} if call == "list_sessions" else {}

    assert invalid(getattr(host, call), page_size=-1, **fields) == ["page_size"]


@pytest.mark.parametrize("call", ["get_agent", "update_agent", "delete_agent", "open_session", "list_sessions"])
def test_c03_the_agent_of_another_tenant_is_not_found(shared, tenant, host, call):
    host.create_agent(agent_id="alice")
    other = shared.host(tenant + "-other")
    fields = {"taint": PUBLIC} if call == "open_session" else {}

    assert failure_of(getattr(other, call), agent_id="alice", **fields) == failure_of(
        getattr(other, call), agent_id="never", **fields
    )
    assert refusal(getattr(other, call), agent_id="alice", **fields) == NO_AGENT
    host.get_agent(agent_id="alice")


@pytest.mark.parametrize("call", ["get_session", "close_session", "raise_taint", "reset_session"])
def test_c03_the_session_of_another_tenant_is_not_found(shared, tenant, session, call):
    own = session(PUBLIC)
    fields = {"taint": RESTRICTED} if call == "raise_taint" else {}

    assert refusal(getattr(shared.host(tenant + "-other"), call), session_id=own.session_id, **fields) == (
        "NOT_FOUND SESSION_NOT_FOUND"
    )
    assert own.get_session().session.taint == PUBLIC


def test_c03_lists_hold_nothing_of_another_tenant(shared, tenant, session):
    session(PUBLIC).save_memory(key="plan", content="text")
    other = shared.host(tenant + "-other")

    assert other.list_agents().agents == []
    assert events(other) == []
    assert events(other, agent_id="alice") == []


@pytest.mark.parametrize("level", LEVELS)
def test_c03_agents_do_not_see_each_other_at_any_level(session, level):
    session(level, agent_id="alice").save_memory(key="plan", content="whale")
    bob = session(level, agent_id="bob")

    assert refusal(bob.get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
    assert refusal(bob.delete_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
    assert keys(bob.list_memories()) == keys(bob.search_memories(query="whale")) == []
    assert bob.save_memory(key="plan", content="zebra").memory.content == "zebra"


def test_deleting_an_agent_does_not_wait_for_a_session_that_has_expired(service, clock):
    host = service.host()
    service.agent()
    opened = host.open_session(agent_id="alice", taint=PUBLIC, ttl={"seconds": 60})
    clock.advance(seconds=61)

    with service.database.as_owner() as owner, owner.transaction():
        lock_rows(owner, "vault.session", "session_id = %s", opened.session.session_id)
        host.delete_agent(agent_id="alice")


def test_deleting_an_agent_deletes_its_sessions(session, host):
    own = session(PUBLIC)
    host.delete_agent(agent_id="alice")

    assert refusal(host.get_agent, agent_id="alice") == NO_AGENT
    assert refusal(host.delete_agent, agent_id="alice") == NO_AGENT
    assert refusal(own.list_memories) == "UNAUTHENTICATED CREDENTIAL_INVALID"
    assert refusal(host.get_session, session_id=own.session_id) == "NOT_FOUND SESSION_NOT_FOUND"


def fill(service):
    """Something of `alice` in every table, at every label."""
    for label in Label:
        session = service.session(label)
        session.save_memory(key="plan", content="one")
        session.save_memory(key="plan", content="two")
        session.save_memory(key="gone", content="one")
        session.delete_memory(key="gone")
        with service.database.connect(label.role) as connection:
            embed_batch(connection, quick, START, next_model=7)


def rows_by_table(database):
    """How many rows of some agent each table has."""
    with database.as_owner() as owner:
        tables = owner.execute(
            "SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.columns"
            "  JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE column_name IN ('agent', 'owner') AND table_type = 'BASE TABLE'"
            "   AND (table_schema = 'vault' OR table_schema LIKE 'muniment%')"
        ).fetchall()
        return {name: owner.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()[0] for (name,) in tables}


def test_deleting_an_agent_erases_it_in_every_table_but_the_audit(service):
    """Its ceiling stays, which says for which host keys its audit rows are."""
    fill(service)
    before = rows_by_table(service.database)
    service.host().delete_agent(agent_id="alice")
    erase_all(service.database)
    after = rows_by_table(service.database)

    audit = {name: rows for name, rows in before.items() if name.endswith(".audit")}
    kept = {name: rows for name, rows in after.items() if rows}
    assert kept == audit | {
        "muniment_control.audit": audit["muniment_control.audit"] + 1,
        "muniment_control.erased_agent": 1,
    }
    assert {name for name, rows in before.items() if not rows} == {
        "muniment_control.erased_agent",
        "vault.block_link",
        "vault.shared_block",
        "vault.erasure",
        "vault.release",  # releases/test_releases.py has some
        *(f"{label.role}.embedding_list" for label in Label),  # search/test_embedding_lists.py has some
    }


def test_deleting_an_agent_leaves_the_others(service):
    fill(service)
    other = service.session(RESTRICTED, agent_id="bob")
    other.save_memory(key="plan", content="text")
    service.host().delete_agent(agent_id="alice")
    erase_all(service.database)

    assert other.get_memory(key="plan").memory.content == "text"


def test_a_successor_of_the_same_id_inherits_nothing(session, host):
    first = session(PUBLIC)
    first.save_memory(key="plan", content="whale")
    host.delete_agent(agent_id="alice")
    second = session(RESTRICTED)

    assert keys(second.list_memories()) == []
    assert {event.session_id for event in events(host, agent_id="alice") if event.session_id} == {second.session_id}


def test_an_erased_agent_is_named_by_a_number_in_the_audit(session, host):
    session(PUBLIC).save_memory(key="plan", content="whale")
    host.delete_agent(agent_id="alice")
    session(PUBLIC)

    erased = {event.agent_id for event in events(host) if event.agent_id != "alice"}

    (number,) = erased
    assert number.startswith("~")
    assert number[1:].isdigit()
    assert [event.method for event in events(host, agent_id=number)] == [
        *["CreateAgent"] * 4,  # the agent, and its first blocks
        "OpenSession",
        "SaveMemory",
        "DeleteAgent",
    ]


def test_c20_deleting_an_agent_answers_the_same_whatever_it_holds(session, host):
    session(RESTRICTED).save_memory(key="plan", content="high")
    host.create_agent(agent_id="empty")

    assert host.observe("DeleteAgent", agent_id="alice") == host.observe("DeleteAgent", agent_id="empty")


def test_an_agent_says_nothing_that_is_derived_from_items(session, host):
    host.create_agent(agent_id="alice")
    before = host.get_agent(agent_id="alice").agent
    session(RESTRICTED).save_memory(key="plan", content="high")

    assert host.get_agent(agent_id="alice").agent == before
