"""How long what agents store lives, agents that are held, and the erasure of what is about one person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.holds import held_agents, hold_agent
from muniment_server.admin.purge import purgeable, remove_sessions, remove_versions
from muniment_server.agents import erasing
from muniment_server.domain.classification import Classification
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, invalid, keys, refusal
from tests.support.clock import Clock
from tests.support.concurrency import in_background, wait_until_blocked

_MEMORY, _PASSAGE = 1, 4
_DAY = {"seconds": 86_400}
_SUBJECT = "subject:alice@example.com"


@pytest.fixture
def host(service):
    return service.host()


@pytest.fixture
def at(service):
    """A session of the agent `alice` at a level."""
    service.agent()
    return service.session


def hold(service, agent_id="alice", *, reason="case 12"):
    with connect_operator(service.database.admin) as operator:
        hold_agent(operator, "acme", agent_id, reason)


# Time to live


@pytest.mark.parametrize(
    "save",
    [
        lambda session: session.save_memory(key="plan", content="ship").memory,
        lambda session: session.save_memories(memories=[{"key": "plan", "content": "ship"}]).memories[0],
    ],
    ids=["one", "many"],
)
def test_a_memory_lives_as_long_as_its_agent_says(host, at, save):
    host.update_agent(agent_id="alice", limits={"memory_ttl": _DAY})
    before = datetime.now(UTC)

    memory = save(at(INTERNAL))

    lives = memory.expire_time.ToDatetime(tzinfo=UTC) - before
    assert timedelta(days=1) <= lives < timedelta(days=1, minutes=5)


def test_a_passage_lives_as_long_as_its_agent_says(host, at):
    host.update_agent(agent_id="alice", limits={"passage_ttl": _DAY})
    session = at(INTERNAL)

    stored = session.store_passage(content="said").passage
    session.import_passages({"content": "imported"})
    memory = session.save_memory(key="plan", content="ship").memory

    assert stored.HasField("expire_time")
    assert all(passage.HasField("expire_time") for passage in session.list_passages().passages)
    assert not memory.HasField("expire_time")


def test_a_save_may_say_itself_when_it_expires(host, at):
    host.update_agent(agent_id="alice", limits={"memory_ttl": _DAY})
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=5)

    memory = at(INTERNAL).save_memory(key="plan", content="ship", expire_time=soon).memory

    assert memory.expire_time.ToDatetime(tzinfo=UTC) == soon


def test_each_save_renews_the_time(service, host, at):
    host.update_agent(agent_id="alice", limits={"memory_ttl": _DAY})
    session = at(INTERNAL)

    first = session.save_memory(key="plan", content="ship").memory
    again = session.save_memory(key="plan", content="ship").memory

    assert again.expire_time.ToDatetime() > first.expire_time.ToDatetime()


def test_no_time_to_live_is_the_default_and_zero_ends_one(host, at):
    assert not host.get_agent(agent_id="alice").agent.limits.HasField("memory_ttl")
    host.update_agent(agent_id="alice", limits={"memory_ttl": _DAY})
    changed = host.update_agent(agent_id="alice", limits={"max_items": 9}).agent
    assert changed.limits.memory_ttl.seconds == 86_400

    host.update_agent(agent_id="alice", limits={"memory_ttl": {}})

    assert not at(INTERNAL).save_memory(key="plan", content="ship").memory.HasField("expire_time")


@pytest.mark.parametrize("seconds", [-1, 315_576_001])
def test_a_time_to_live_is_at_most_ten_years(host, seconds):
    assert invalid(host.update_agent, agent_id="alice", limits={"memory_ttl": {"seconds": seconds}}) == [
        "limits.memory_ttl"
    ]


# Agents that are held


def test_nothing_of_an_agent_that_is_held_is_erased_or_deleted(service, host, at):
    at(INTERNAL).save_memory(key="plan", content="ship", tags=[_SUBJECT])
    hold(service)

    assert host.get_agent(agent_id="alice").agent.held
    for erase in (
        lambda: host.erase_items(agent_id="alice", kind=_MEMORY, name="plan"),
        lambda: host.delete_agent(agent_id="alice"),
    ):
        assert refusal(erase) == "FAILED_PRECONDITION AGENT_HELD"
    assert host.erase_items(every_agent=True, kind=_MEMORY, tag=_SUBJECT).skipped_agent_ids == ["alice"]

    assert at(INTERNAL).get_memory(key="plan").memory.content == "ship"
    outcomes = [event.outcome for event in host.list_audit_events().audit_events]
    assert outcomes.count("AGENT_HELD") == 2


def test_the_database_keeps_an_agent_that_is_held(service):
    """Whatever a server does."""
    service.agent()
    hold(service)

    with service.database.as_owner() as owner, pytest.raises(Exception, match="held_agents_stay"):
        owner.execute("UPDATE vault.agent SET delete_time = now()")


def test_a_hold_ends_an_erasure_under_way(service, host, at, monkeypatch):
    """The batch that has begun is finished, and then the call fails."""
    monkeypatch.setattr(erasing, "_BATCH_ITEMS", 1)
    session = at(INTERNAL)
    for number in range(3):
        session.save_memory(key=f"plan{number}", content="ship", tags=[_SUBJECT])
    erase = erasing._Level.erase

    def erase_and_hold(self, items):
        erase(self, items)
        hold(service)

    monkeypatch.setattr(erasing._Level, "erase", erase_and_hold)

    assert refusal(host.erase_items, agent_id="alice", kind=_MEMORY, tag=_SUBJECT) == "FAILED_PRECONDITION AGENT_HELD"
    assert len(keys(session.list_memories())) == 2


def test_an_erasure_that_begins_during_a_hold_waits_for_it(service, host, at):
    """Otherwise it would go by the agent as it was before."""
    session = at(INTERNAL)
    session.save_memory(key="plan", content="ship")
    with service.database.as_owner() as owner, owner.transaction():
        owner.execute("UPDATE vault.agent SET held = TRUE")
        thread, outcomes = in_background(host.erase_items, agent_id="alice", kind=_MEMORY, name="plan")
        wait_until_blocked(service)
    thread.join()

    assert outcomes[0].code.name == "FAILED_PRECONDITION"
    assert keys(session.list_memories()) == ["plan"]


def test_a_purge_leaves_out_what_is_held(service, host, at):
    clock = Clock(service.database)
    for agent_id in ("alice", "bob"):
        session = service.session(INTERNAL, agent_id=agent_id)
        session.save_memory(key="plan", content="one")
        session.save_memory(key="plan", content="two")
        session.save_memory(key="gone", content="one")
        session.delete_memory(key="gone")
        service.host().close_session(session_id=session.session_id)
    hold(service)
    clock.advance(days=1)
    later = datetime.now(UTC) + timedelta(days=2)

    with connect_operator(service.database.admin) as operator:
        what = purgeable(operator, tenant="acme", agent_id=None, kind=None, name=None)
        purged = sum(each.items + each.revisions for each in remove_versions(operator, what, before=later))
        sessions = sum(len(batch) for batch in remove_sessions(operator, what, before=later))
        held = held_agents(operator)

    assert [agent.agent_id for agent in held] == ["alice"]
    assert (purged, sessions) == (3, 1)
    with service.database.as_owner() as owner:
        query = """SELECT agent_id, count(*) FROM muniment_internal.revision JOIN vault.agent USING (tenant, agent)
                    GROUP BY agent_id"""
        assert dict(owner.execute(query).fetchall()) == {"alice": 3, "bob": 1}


def test_the_list_of_holds_says_why_each_was_placed_last(service, host):
    for agent_id in ("alice", "bob"):
        host.create_agent(agent_id=agent_id)
    for agent_id, reason in (("bob", "case 11"), ("alice", "case 12"), ("alice", "case 13")):
        hold(service, agent_id, reason=reason)

    with connect_operator(service.database.admin) as operator:
        held = held_agents(operator)

    reasons = [(agent.agent_id, (agent.reason or "").partition(": ")[2]) for agent in held]
    assert reasons == [("alice", "case 13"), ("bob", "case 11")]
    assert all(agent.since is not None for agent in held)


def test_a_purge_of_one_level(service, at):
    for level in (PUBLIC, RESTRICTED):
        session = at(level)
        session.save_memory(key="plan", content="one")
        session.save_memory(key="plan", content="two")
    later = datetime.now(UTC) + timedelta(days=1)

    with connect_operator(service.database.admin) as operator:
        what = purgeable(operator, tenant="acme", agent_id=None, kind=None, name=None)
        purged = list(remove_versions(operator, what, before=later, level=Classification.RESTRICTED))

    assert [(each.classification.name, each.revisions) for each in purged] == [("RESTRICTED", 1)]


# What is about one person


def test_what_is_about_one_person_is_erased_of_every_agent(service, host):
    for agent_id in ("alice", "bob"):
        for level in (PUBLIC, CONFIDENTIAL):
            session = service.session(level, agent_id=agent_id)
            session.save_memory(key=f"plan{level}", content="ship", tags=[_SUBJECT])
            session.save_memory(key="other", content="ship", tags=["subject:bob"])
            session.store_passage(content="said", tags=[_SUBJECT])

    for kind in (_MEMORY, _PASSAGE):
        answer = host.erase_items(every_agent=True, kind=kind, tag=_SUBJECT)
        assert (list(answer.skipped_agent_ids), answer.skipped_count) == ([], 0)

    for agent_id in ("alice", "bob"):
        session = service.session(RESTRICTED, agent_id=agent_id)
        assert keys(session.list_memories()) == ["other"]
        assert not session.list_passages().passages
    with service.database.as_owner() as owner:
        assert owner.execute("SELECT FROM vault.erasure").fetchall() == []


def test_agents_that_the_key_does_not_reach_are_left_out_and_counted(service, host):
    host.create_agent(agent_id="high", known_from=PUBLIC)
    host.create_agent(agent_id="unknown")
    low = service.host(ceiling=PUBLIC)
    low.create_agent(agent_id="low")
    for agent_id in ("high", "low"):
        service.session(PUBLIC, agent_id=agent_id).save_memory(key="plan", content="ship", tags=[_SUBJECT])

    answer = low.erase_items(every_agent=True, kind=_MEMORY, tag=_SUBJECT)

    assert list(answer.skipped_agent_ids) == ["high"]
    assert keys(service.session(PUBLIC, agent_id="high").list_memories()) == ["plan"]
    assert keys(service.session(PUBLIC, agent_id="low").list_memories()) == []


def test_a_forgotten_agent_id_erases_nothing(host):
    """Only `every_agent` means all of them, and only with a tag."""
    assert invalid(host.erase_items, kind=_MEMORY, tag=_SUBJECT) == ["agent_id"]
    assert invalid(host.erase_items, agent_id="alice", every_agent=True, kind=_MEMORY, tag=_SUBJECT) == ["agent_id"]
    assert invalid(host.erase_items, every_agent=True, kind=_MEMORY, name="plan") == ["every_agent"]
