"""What purge throws away."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import click
import grpc
import pytest

from muniment_server.admin import connection
from muniment_server.admin import purge as purging
from muniment_server.admin.audit import audit_events
from muniment_server.admin.connection import NoSuchAgent, NoSuchTenant, connect_operator
from muniment_server.admin.history import revisions_of
from muniment_server.admin.inspection import broken_ledgers
from muniment_server.admin.purge import Purgeable, purgeable, remove_sessions, remove_versions
from muniment_server.admin.sessions import close_sessions
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import RandomIds
from muniment_server.domain.items import ItemKind
from tests.proof.races.mutants import spoiled
from tests.support.clock import Clock
from tests.support.concurrency import lock_rows
from tests.support.services import Caller, failure_of, reason_of, serving

LATER = timedelta(days=365)


def test_an_expired_and_replaced_version_is_purged_too(database):
    """Its row is the successor's by then: only its last version is left."""
    clock = Clock(database)
    with serving(database) as service:
        session = service.session(Classification.PUBLIC)
        session.save_memory(key="k", content="old", expire_time=datetime.now(UTC) + timedelta(seconds=60))
        clock.advance(seconds=120)
        session.save_memory(key="k", content="new")

    with connect_operator(database.admin) as operator:
        list(remove_versions(operator, Purgeable(), before=datetime.now(UTC) + timedelta(seconds=100)))

    with database.as_owner() as owner:
        assert owner.execute("SELECT content FROM muniment_public.revision WHERE kind = 1").fetchall() == [("new",)]


@pytest.mark.parametrize(("erased", "overwritten"), [(2, []), (3, ["two"])], ids=["in the middle", "the newest"])
def test_a_version_next_to_an_erased_one_is_purged(database, erased, overwritten):
    """Of the erasure of the newest version, only the time of the erasure is known."""
    clock = Clock(database)
    with serving(database) as service:
        session, began = service.session(Classification.PUBLIC), datetime.now(UTC)
        for content in ("one", "two", "three"):
            session.save_memory(key="plan", content=content)
        session.save_memory(key="other", content="live")
        clock.advance(days=1)
        with database.as_owner() as owner:
            (item_id,) = owner.execute(
                "SELECT DISTINCT item_id FROM muniment_public.revision WHERE name = 'plan'"
            ).fetchone()
        service.host().erase_items(agent_id="alice", kind=1, item_id=str(item_id), revision=erased)

    def left(before: datetime) -> list[str]:
        with connect_operator(database.admin) as operator:
            list(remove_versions(operator, Purgeable(), before=before))
        with database.as_owner() as owner:
            query = "SELECT content FROM muniment_public.revision WHERE kind = 1 ORDER BY name DESC, revision"
            return [content for (content,) in owner.execute(query)]

    live = ["live"] if erased == 3 else ["three", "live"]
    assert left(began + timedelta(hours=1)) == [*overwritten, *live]
    assert left(began + timedelta(days=2)) == live


@pytest.mark.parametrize("is_written_anew", [False, True])
def test_after_a_restore_and_a_repeated_erasure_only_old_versions_are_purged(database, is_written_anew):
    """The backup has the version before the erased one, which is live in it."""
    clock = Clock(database)
    with serving(database) as service:
        session, began = service.session(Classification.PUBLIC), datetime.now(UTC)
        for content in ("one", "two"):
            session.save_memory(key="plan", content=content)
        with database.as_owner() as owner:  # what the replay of a journal writes
            owner.execute(
                "INSERT INTO muniment_control.audit"
                "       (tenant, event_id, time, agent, level, method, outcome, kind, item_id, revision)"
                " SELECT tenant, gen_random_uuid(), update_time, agent, 1, 'EraseItems', 'OK', kind, item_id, 3"
                "   FROM muniment_public.item WHERE name = 'plan'"
            )
        clock.advance(days=40)
        if is_written_anew:
            service.session(Classification.PUBLIC, conversation_id="later").save_memory(key="plan", content="three")
        with connect_operator(database.admin) as operator:
            list(remove_versions(operator, Purgeable(), before=began + timedelta(days=30)))
            broken = broken_ledgers(operator)

    with database.as_owner() as owner:
        query = "SELECT content FROM muniment_public.revision WHERE kind = 1 ORDER BY revision"
        left = [content for (content,) in owner.execute(query)]
    assert left == (["two", "three"] if is_written_anew else ["two"])
    assert set(broken.values()) == {0}


def ages_are_counted_from_the_overwriting(database):
    """However old a version was by then. A mutant below breaks it."""
    clock = Clock(database)
    with serving(database) as service:
        began = datetime.now(UTC)
        service.session(Classification.PUBLIC).save_memory(key="plan", content="old")
        clock.advance(days=20)
        service.session(Classification.PUBLIC).save_memory(key="plan", content="new")

    def left(before: datetime) -> list[str]:
        with connect_operator(database.admin) as operator:
            list(remove_versions(operator, Purgeable(), before=before))
        with database.as_owner() as owner:
            query = "SELECT content FROM muniment_public.revision WHERE kind = 1 ORDER BY revision"
            return [content for (content,) in owner.execute(query)]

    assert left(began + timedelta(days=19)) == ["old", "new"]
    assert left(began + timedelta(days=21)) == ["new"]


def test_the_age_of_a_version_is_counted_from_when_it_was_overwritten(database):
    ages_are_counted_from_the_overwriting(database)


def test_only_what_is_named_is_purged(database):
    labels = (Label.PUBLIC, Label.INTERNAL_TRUSTED, Label.RESTRICTED)
    with serving(database) as service:
        for agent_id in ("alice", "bob"):
            for label in labels:
                session = service.session(label, agent_id=agent_id)
                for key in ("plan", "other"):
                    session.save_memory(key=key, content="one")
                    session.save_memory(key=key, content="two")
                session.update_block(label="plan", content="one")
                session.update_block(label="plan", content="two")

    def left() -> Counter[tuple[str, int, str]]:
        query = """SELECT agent_id, kind, name
                     FROM (SELECT * FROM muniment_public.revision UNION ALL SELECT * FROM muniment_restricted.revision
                            UNION ALL SELECT * FROM muniment_internal_trusted.revision) AS revision
                          JOIN vault.agent USING (tenant, agent)"""
        with database.as_owner() as owner:
            return Counter(owner.execute(query).fetchall())

    before = left()
    named = ("alice", ItemKind.MEMORY, "plan")
    with connect_operator(database.admin) as operator:
        what = purgeable(operator, tenant="acme", agent_id="alice", kind=ItemKind.MEMORY, name="plan")
        purged = {
            each.classification: each.revisions
            for each in remove_versions(operator, what, before=datetime.now(UTC) + timedelta(hours=1))
        }
        with pytest.raises(NoSuchAgent):
            purgeable(operator, tenant="acme", agent_id="nobody", kind=None, name=None)
        with pytest.raises(NoSuchTenant):
            purgeable(operator, tenant="nobody", agent_id=None, kind=None, name=None)
        with pytest.raises(click.UsageError, match="--agent needs --tenant"):
            purgeable(operator, tenant=None, agent_id="alice", kind=None, name=None)
        with pytest.raises(click.UsageError, match="--agent needs --tenant"):
            close_sessions(operator, "tenant close-sessions", agent_id="alice")

        assert purged == {label: int(label in labels) for label in Label if label in labels or not label.is_trusted}
        assert before - left() == Counter({named: 3})
        rest = purgeable(operator, tenant="acme", agent_id=None, kind=ItemKind.BLOCK, name=None)
        list(remove_versions(operator, rest, before=datetime.now(UTC) + timedelta(hours=1)))
        assert {kind for _, kind, _ in before - left()} == {ItemKind.MEMORY, ItemKind.BLOCK}
        assert {agent_id for agent_id, kind, _ in before - left() if kind == ItemKind.BLOCK} == {"alice", "bob"}


def purges_are_recorded_with_their_agents(database, tenant=None):
    """So a host key below the ceiling of an agent does not learn that anything of it was purged."""
    with serving(database) as service:
        service.agent("hidden")
        low = service.host(ceiling=Classification.INTERNAL)
        low.create_agent(agent_id="low")
        for agent_id in ("hidden", "low"):
            session = service.session(Classification.INTERNAL, agent_id=agent_id)
            session.save_memory(key="plan", content="one")
            session.save_memory(key="plan", content="two")
            service.host().close_session(session_id=session.session_id)
        with connect_operator(database.admin) as operator:
            what = purgeable(operator, tenant=tenant, agent_id=None, kind=None, name=None)
            list(remove_versions(operator, what, before=datetime.now(UTC) + LATER))
        purge_sessions(database, before=datetime.now(UTC) + LATER, tenant=tenant)

        def recorded(host: Caller) -> set[tuple[str, str]]:
            events = host.list_audit_events().audit_events
            return {(event.method, event.agent_id) for event in events if event.method.startswith("purge")}

        purged = {("purge", "low"), ("purge sessions", "low")}
        assert recorded(low) == purged
        assert recorded(service.host()) == purged | {("purge", "hidden"), ("purge sessions", "hidden")}


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_c23_what_is_purged_of_hidden_agents_is_hidden(database, tenant):
    purges_are_recorded_with_their_agents(database, tenant)


def purge_sessions(database, *, before, **owner):
    """Purge the sessions of all, or of one owner; return their ids."""
    with connect_operator(database.admin) as operator:
        what = purgeable(operator, **({"tenant": None, "agent_id": None} | owner), kind=None, name=None)
        return {str(each.session_id) for batch in remove_sessions(operator, what, before=before) for each in batch}


def closed_session(service, level=Classification.PUBLIC, **owner):
    """A session that was used, and is closed."""
    session = service.session(level, **owner)
    session.save_memory(key="plan", content="text")
    service.host(owner.get("tenant", "acme")).close_session(session_id=session.session_id)
    return session


def sessions_in(database):
    with database.as_owner() as owner:
        return {str(row.session_id) for row in owner.execute("SELECT session_id FROM vault.session")}


def test_sessions_that_were_closed_or_expired_that_long_ago_are_purged(database):
    """The time is when a session was closed, or when it expired if that came first."""
    clock = Clock(database)
    with serving(database) as service:
        began = datetime.now(UTC)
        expired, closed_early = service.session(Classification.PUBLIC), closed_session(service)
        clock.advance(hours=23)
        closed_late = closed_session(service)
        clock.advance(hours=23)
        still_open = service.session(Classification.PUBLIC)

        assert purge_sessions(database, before=began) == set()
        assert purge_sessions(database, before=began + timedelta(hours=1)) == {closed_early.session_id}
        assert purge_sessions(database, before=began + timedelta(hours=23.5)) == {closed_late.session_id}
        assert purge_sessions(database, before=began + timedelta(hours=25)) == {expired.session_id}
        assert sessions_in(database) == {still_open.session_id}


def only_the_closed_one_is_purged(database):
    with serving(database) as service:
        still_open, closed = service.session(Classification.INTERNAL), closed_session(service)

        assert purge_sessions(database, before=datetime.now(UTC) + LATER) == {closed.session_id}
        still_open.save_memory(key="plan", content="text")


def test_an_open_session_is_never_purged(database):
    """Whatever time the command goes by: the clock of its machine may be wrong."""
    only_the_closed_one_is_purged(database)


def the_taint_stays(database):
    with serving(database) as service:
        high = closed_session(service, Classification.RESTRICTED)
        purge_sessions(database, before=datetime.now(UTC) + LATER)
        reopened = {"agent_id": "alice", "conversation_id": high.conversation_id}
        refused = failure_of(service.host().open_session, taint=Classification.CONFIDENTIAL, **reopened)

        assert reason_of(refused) == "CONVERSATION_TAINTED"
        assert service.host().open_session(taint=Classification.RESTRICTED, **reopened).session.session_id


def test_a_conversation_keeps_its_taint_without_its_sessions(database):
    the_taint_stays(database)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("holds", "query", "right", "wrong"),
    [
        pytest.param(
            purges_are_recorded_with_their_agents,
            "purge",
            "gen_random_uuid(), purged.agent,",
            "gen_random_uuid(), NULL::bigint,",
            id="the agent of a purge",
        ),
        pytest.param(
            purges_are_recorded_with_their_agents,
            "purge_sessions",
            "gen_random_uuid(), found.agent,",
            "gen_random_uuid(), NULL::bigint,",
            id="the agent of purged sessions",
        ),
        pytest.param(
            ages_are_counted_from_the_overwriting,
            "purge",
            "SELECT newer.update_time",
            "SELECT old_revision.update_time",
            id="the time of the overwriting",
        ),
        pytest.param(
            only_the_closed_one_is_purged,
            "purge_sessions",
            "least(%(before)s, vault.clock())",
            "%(before)s",
            id="the time of the database",
        ),
        pytest.param(
            only_the_closed_one_is_purged,
            "purge_sessions",
            "least(session.close_time, session.expire_time) < least(%(before)s, vault.clock())",
            "session.create_time < %(before)s",
            id="closed or expired",
        ),
        pytest.param(
            the_taint_stays,
            "purge_sessions",
            "purged.conversation_id, purged.ceiling ), classified AS (",
            "purged.conversation_id, purged.ceiling ),"
            " forgotten AS (DELETE FROM vault.conversation AS forgotten USING purged"
            " WHERE (forgotten.tenant, forgotten.conversation_id) = (purged.tenant, purged.conversation_id)),"
            " classified AS (",
            id="conversations stay",
        ),
    ],
)
def test_without_a_guard_of_the_purge_these_tests_fail(database, holds, query, right, wrong):
    with (
        spoiled(connection.QUERIES, query, right, wrong),
        pytest.raises((AssertionError, grpc.RpcError)),
    ):
        holds(database)


def test_the_token_and_the_id_of_a_purged_session_are_as_unknown_as_any(database):
    """Also to a worker that has served the session, and remembers it."""
    with serving(database) as service:
        purged = closed_session(service)
        with database.as_owner() as owner:
            (number,) = owner.execute("SELECT tenant FROM vault.tenant WHERE name = 'acme'").fetchone()
        never = tokens.mint(tokens.TokenKind.SESSION, tenant=number, secret=RandomIds().new_secret())
        assert purge_sessions(database, before=datetime.now(UTC) + LATER) == {purged.session_id}

        unknown = Caller(service.channel, never).observe("GetMemory", key="plan")
        assert purged.observe("GetMemory", key="plan") == unknown
        assert unknown.code is grpc.StatusCode.UNAUTHENTICATED
        host = service.host()
        for method in ("GetSession", "CloseSession", "ResetSession"):
            absent = host.observe(method, session_id=str(uuid.uuid4()))
            assert host.observe(method, session_id=purged.session_id) == absent
            assert absent.code is grpc.StatusCode.NOT_FOUND
        listed = host.list_sessions(agent_id="alice", include_closed=True)
        assert [session.session_id for session in listed.sessions] == []


def test_what_was_recorded_of_a_purged_session_stays_and_its_purge_is_recorded(database):
    """One row for each agent and level of each batch, with the operator."""
    with serving(database) as service:
        sessions = [closed_session(service, level) for level in (Classification.PUBLIC, Classification.RESTRICTED)]
        with connect_operator(database.admin) as operator:
            before = audit_events(operator, tenant="acme", limit=1000)
            purge_sessions(database, before=datetime.now(UTC) + LATER, tenant="acme", agent_id="alice")
            after = audit_events(operator, tenant="acme", limit=1000)
            history = revisions_of(operator, tenant="acme", agent_id="alice", kind=ItemKind.MEMORY, name="plan")

    added = [event for event in after if event not in before]
    assert [event for event in after if event in before] == before
    assert {str(event.session_id) for event in before} >= {session.session_id for session in sessions}
    assert {(event.method, event.outcome, event.agent_id, event.classification) for event in added} == {
        ("purge sessions", "OK", "alice", Classification.PUBLIC),
        ("purge sessions", "OK", "alice", Classification.RESTRICTED),
    }
    assert len(added) == 2
    assert all((event.reason or "").startswith("by ") for event in added)
    assert [str(revision.session_id) for revision in history] == [session.session_id for session in sessions]


def test_only_the_sessions_of_the_owner_that_is_named_are_purged_in_batches(database, monkeypatch):
    monkeypatch.setattr(purging, "_BATCH_SESSIONS", 2)
    with serving(database) as service:
        of = {
            (tenant, agent_id): {
                closed_session(service, tenant=tenant, agent_id=agent_id).session_id for _ in range(count)
            }
            for tenant, agent_id, count in (("acme", "alice", 5), ("acme", "bob", 3), ("other", "alice", 2))
        }
    before = datetime.now(UTC) + LATER

    assert purge_sessions(database, before=before, tenant="acme", agent_id="alice") == of["acme", "alice"]
    assert sessions_in(database) == of["acme", "bob"] | of["other", "alice"]
    assert purge_sessions(database, before=before, tenant="other") == of["other", "alice"]
    assert purge_sessions(database, before=before) == of["acme", "bob"]
    with connect_operator(database.admin) as operator:
        events = audit_events(operator, tenant="acme", limit=1000)
    assert [event.agent_id for event in events if event.method == "purge sessions"] == ["bob"] * 2 + ["alice"] * 3


def test_a_session_that_another_transaction_holds_is_left_for_the_next_purge(database):
    with serving(database) as service:
        held, free = closed_session(service), closed_session(service)
        with database.as_owner() as other, other.transaction():
            lock_rows(other, "vault.session", "session_id = %s", held.session_id, strength="NO KEY UPDATE")
            assert purge_sessions(database, before=datetime.now(UTC) + LATER) == {free.session_id}

        assert purge_sessions(database, before=datetime.now(UTC) + LATER) == {held.session_id}
