"""UndeleteItem: a deleted item comes back at the level at which it was deleted, and nowhere else."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index, broken_ledgers
from muniment_server.admin.purge import Purgeable, remove_versions
from muniment_server.domain.classification import Label
from muniment_server.items import undeleting as items
from muniment_server.monitor.session_scope import SessionScope
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC, RESTRICTED, invalid, keys, refusal
from tests.support.concurrency import in_background, lock_rows, wait_until_blocked
from tests.support.erasing import erase_all
from tests.support.invariants import broken_invariants
from tests.support.labels import untrusted
from tests.support.services import Service, reason_of

_MEMORY, _NOTE, _BLOCK, _PASSAGE = 1, 2, 3, 4
PLAN = {"agent_id": "alice", "kind": _MEMORY, "name": "plan"}
GONE = "NOT_FOUND MEMORY_NOT_FOUND"


def at(service: Service, level):
    return service.session(level, conversation_id=f"c{level}")


def label_of(taint) -> dict[str, int]:
    """The fields of a request that name a label, or the untrusted one of a level."""
    label = taint if isinstance(taint, Label) else untrusted(taint)
    return {"classification": label.level, "integrity": label.integrity}


def undelete(service: Service, taint=PUBLIC, **fields):
    return service.host().undelete_item(**{**PLAN, **label_of(taint), **fields})


def refused(service: Service, taint=PUBLIC, host=None, **fields):
    return refusal((host or service.host()).undelete_item, **{**PLAN, **label_of(taint), **fields})


def delete_memory(session, key: str = "plan", **fields) -> None:
    session.save_memory(key=key, content="the whale", **fields)
    session.delete_memory(key=key)


def ledger(service: Service, level, name: str = "plan") -> list[tuple[int, str]]:
    with service.database.as_owner() as owner:
        query = (
            f"SELECT revision, content FROM muniment_{level.name.lower()}.revision WHERE name = %s ORDER BY revision"
        )
        return owner.execute(query.encode(), [name]).fetchall()


def item_of(service: Service, *, live: bool) -> str:
    """The id of the live or the deleted item. Empty: there is none."""
    with service.database.as_owner() as owner:
        query = "SELECT item_id FROM muniment_public.item WHERE name = 'plan' AND (delete_time IS NULL) = %s"
        return "".join(str(item_id) for (item_id,) in owner.execute(query, [live]).fetchall())


def events(service: Service, **fields) -> list[Any]:
    found = service.host().list_audit_events(agent_id="alice", **fields).audit_events
    return [event for event in found if event.method == "UndeleteItem"]


def broken(service: Service) -> list[object]:
    """What is wrong with ledgers, index and counts, as the doctor and the tests of faults see it."""
    with connect_operator(service.database.admin) as operator:
        found = (broken_ledgers(operator), broken_index(operator))
    return [*(one for one in found if any(one.values())), *broken_invariants(service.database)]


@pytest.mark.parametrize("label", Label)
def test_a_memory_comes_back_at_its_label_as_a_new_revision(service, label):
    session = at(service, label)
    session.save_memory(key="plan", content="one")
    before = session.save_memory(key="plan", content="the whale", tags=["pii"]).memory
    session.delete_memory(key="plan")

    assert undelete(service, label).SerializeToString() == b""

    back = session.get_memory(key="plan").memory
    assert (back.content, back.tags) == ("the whale", ["pii"])
    assert (back.classification, back.integrity) == (label.level, label.integrity)
    assert (back.create_time, back.etag != before.etag) == (before.create_time, True)
    assert ledger(service, label) == [(1, "one"), (2, "the whale"), (3, "the whale")]
    assert keys(session.list_memories(tag="pii")) == ["plan"]
    assert [result.memory.key for result in session.search_memories(query="whale").results] == ["plan"]
    assert broken(service) == []


@pytest.mark.parametrize("deleted", [Label.CONFIDENTIAL, Label.CONFIDENTIAL_TRUSTED])
def test_no_other_label_sees_it_or_changes(service, deleted):
    for label in Label:
        at(service, label).save_memory(key="plan", content=f"text of {label}")
    at(service, deleted).delete_memory(key="plan")
    undelete(service, deleted)

    seen = [at(service, label).get_memory(key="plan").memory for label in Label]
    assert [(memory.classification, memory.integrity) for memory in seen] == [
        (label.level, label.integrity) for label in Label
    ]
    assert [memory.content for memory in seen] == [f"text of {label}" for label in Label]


@pytest.mark.parametrize("deleted", [Label.CONFIDENTIAL, Label.CONFIDENTIAL_TRUSTED])
def test_it_does_not_come_back_from_another_label(service, deleted):
    delete_memory(at(service, deleted))

    assert [refused(service, label) for label in Label if label is not deleted] == [GONE] * 7
    assert [keys(at(service, label).list_memories()) for label in Label] == [[]] * 8


def test_a_note_comes_back_to_its_tier(service):
    session = at(service, INTERNAL)
    note = session.add_note(content="likes whales", tier=2).note
    session.delete_note(note_id=note.note_id, tier=2)
    undelete(service, INTERNAL, kind=_NOTE, name=note.note_id.upper())

    assert [back.content for back in session.list_notes(tier=2).notes] == ["likes whales"]
    assert session.list_notes(tier=1).notes == []
    assert [result.note.note_id for result in session.search_notes(query="whales", tier=2).results] == [note.note_id]
    assert broken(service) == []


def test_a_passage_comes_back_as_it_was(service):
    session = at(service, INTERNAL)
    fields = {"content": "the whale", "tags": ["log"], "thread": "t", "author": "Ishmael"}
    before = session.store_passage(**fields).passage
    session.delete_passage(passage_id=before.passage_id)
    undelete(service, INTERNAL, kind=_PASSAGE, name=before.passage_id)

    assert session.get_passage(passage_id=before.passage_id).passage == before
    found = session.search_passages(query="ishmael").results
    assert [result.passage.passage_id for result in found] == [before.passage_id]
    assert broken(service) == []


def test_it_waits_for_its_embedding_again(service):
    session = at(service, INTERNAL)
    delete_memory(session)
    undelete(service, INTERNAL)
    with service.database.as_owner() as owner:
        query = "SELECT count(*) FROM muniment_internal.meaning JOIN muniment_internal.item USING (tenant, change_id)"
        assert owner.execute(query).fetchall() == [(1,)]


def test_a_shared_block_is_shared_again_while_it_is_declared(service):
    service.agent("bob")
    session, host = at(service, INTERNAL), service.host()
    shared = {"owner_agent_id": service.agent(), "label": "motto"}
    host.create_shared_block(**shared)
    host.attach_block(**shared, agent_id="bob")
    session.update_block(label="motto", content="calm")
    session.delete_block(label="motto")
    undelete(service, INTERNAL, kind=_BLOCK, name="motto")

    consumer = service.session(INTERNAL, agent_id="bob")
    assert consumer.get_block(label="motto").block.content == "calm"
    session.delete_block(label="motto")
    host.delete_shared_block(**shared)
    undelete(service, INTERNAL, kind=_BLOCK, name="motto")
    assert session.get_block(label="motto").block.content == "calm"
    assert refusal(consumer.get_block, label="motto") == "NOT_FOUND BLOCK_NOT_FOUND"


def test_the_last_item_of_the_name_comes_back(service):
    session = at(service, PUBLIC)
    for content in ("one", "two"):
        session.save_memory(key="plan", content=content)
        session.delete_memory(key="plan")
    undelete(service)

    assert session.get_memory(key="plan").memory.content == "two"


def test_a_live_item_is_not_overwritten(service):
    session = at(service, PUBLIC)
    delete_memory(session)
    live = session.save_memory(key="plan", content="new").memory

    assert refused(service) == "ALREADY_EXISTS ITEM_EXISTS"
    assert session.get_memory(key="plan").memory == live


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        (_MEMORY, "never", "MEMORY_NOT_FOUND"),
        (_NOTE, str(uuid.UUID(int=7)), "NOTE_NOT_FOUND"),
        (_BLOCK, "never", "BLOCK_NOT_FOUND"),
        (_PASSAGE, str(uuid.UUID(int=7)), "PASSAGE_NOT_FOUND"),
    ],
)
def test_what_never_was_is_not_found(service, kind, name, reason):
    service.agent()

    assert refused(service, kind=kind, name=name) == f"NOT_FOUND {reason}"


def test_what_is_erased_stays_erased(service):
    delete_memory(at(service, PUBLIC))
    service.host().erase_items(**PLAN)

    assert refused(service) == GONE


def test_what_is_purged_stays_purged(service):
    delete_memory(at(service, PUBLIC))
    with connect_operator(service.database.admin) as operator:
        list(remove_versions(operator, Purgeable(), before=datetime.now(UTC) + timedelta(hours=1)))

    assert refused(service) == GONE


def test_what_has_expired_stays_gone(service, clock):
    session = at(service, PUBLIC)
    soon = datetime.now(UTC) + timedelta(hours=1)
    delete_memory(session, expire_time=soon)
    delete_memory(session, key="second")
    session.save_memory(key="second", content="new", expire_time=soon)
    clock.advance(hours=2)

    assert refused(service) == GONE
    assert refused(service, name="second") == GONE


def test_an_agent_above_the_ceiling_does_not_exist(service):
    delete_memory(at(service, PUBLIC))
    host = service.host(ceiling=INTERNAL)
    fields = {**PLAN, "classification": PUBLIC}

    hidden = host.observe("UndeleteItem", **fields)

    assert hidden == host.observe("UndeleteItem", **{**fields, "agent_id": "nobody"})
    assert reason_of(hidden) == "AGENT_NOT_FOUND"
    assert keys(at(service, PUBLIC).list_memories()) == []


def test_a_level_above_the_ceiling_of_the_key_is_refused_and_recorded(service):
    delete_memory(at(service, CONFIDENTIAL))
    service.lower("alice", INTERNAL)
    host = service.host(ceiling=INTERNAL)

    assert refused(service, CONFIDENTIAL, host) == "PERMISSION_DENIED CEILING_EXCEEDED"
    [event] = events(service)
    assert (event.outcome, event.classification) == ("CEILING_EXCEEDED", CONFIDENTIAL)


def test_a_level_above_the_ceiling_of_the_agent_is_refused_and_recorded(service):
    service.agent()
    service.lower("alice", INTERNAL)

    assert refused(service, CONFIDENTIAL) == "PERMISSION_DENIED AGENT_CEILING_EXCEEDED"
    [event] = events(service)
    assert (event.outcome, event.classification) == ("AGENT_CEILING_EXCEEDED", RESTRICTED)


def test_the_audit_names_the_key_and_the_item(service):
    delete_memory(at(service, CONFIDENTIAL))
    undelete(service, CONFIDENTIAL)

    item, call = events(service)
    assert item.session_id == call.session_id != ""
    assert (call.host_key_id != "", call.item_id, call.classification) == (True, "", CONFIDENTIAL)
    assert (item.item_id != "", item.revision, item.outcome, item.classification) == (True, 2, "OK", CONFIDENTIAL)
    assert call.kind == item.kind == _MEMORY


def test_its_session_ends_with_the_call(service):
    delete_memory(at(service, CONFIDENTIAL))
    undelete(service, CONFIDENTIAL)
    refused(service, CONFIDENTIAL)

    with service.database.as_owner() as owner:
        query = "SELECT session_id::text, close_time IS NULL FROM vault.session WHERE conversation_id <> %s"
        sessions = dict(owner.execute(query, [f"c{CONFIDENTIAL}"]).fetchall())
    found = service.host().list_sessions(agent_id="alice", include_closed=True).sessions
    assert [session.conversation_id for session in found] == [f"c{CONFIDENTIAL}"]
    assert list(sessions.values()) == [False, False]
    for session_id in sessions:
        assert refusal(service.host().get_session, session_id=session_id) == "NOT_FOUND SESSION_NOT_FOUND"


@pytest.mark.parametrize(
    ("limits", "quota"), [({"max_items": 4}, "items"), ({"max_bytes": 1}, "bytes"), ({"max_revisions": 1}, "revisions")]
)
def test_the_limits_of_the_agent_hold(service, limits, quota):
    session = at(service, PUBLIC)
    delete_memory(session)
    session.save_memory(key="other", content="text")
    service.host().update_agent(agent_id="alice", limits=limits)

    assert refused(service) == "RESOURCE_EXHAUSTED QUOTA_EXCEEDED"
    assert [event.outcome for event in events(service)] == ["QUOTA_EXCEEDED", "OK"]
    assert keys(session.list_memories()) == ["other"]


@pytest.mark.parametrize("limit", ["max_bytes", "max_revisions"])
def test_a_passage_needs_no_room_for_what_is_still_counted(service, limit):
    """It comes back without a new revision, and the bytes of a deleted passage count until it is purged."""
    session = at(service, PUBLIC)
    passage_id = session.store_passage(content="the whale " * 100).passage.passage_id
    session.delete_passage(passage_id=passage_id)
    with service.database.as_owner() as owner:
        ((stored,),) = owner.execute("SELECT sum(bytes)::bigint FROM muniment_public.storage_size").fetchall()
    service.host().update_agent(agent_id="alice", limits={limit: {"max_bytes": stored, "max_revisions": 1}[limit]})

    undelete(service, kind=_PASSAGE, name=passage_id)

    assert session.get_passage(passage_id=passage_id).passage.passage_id == passage_id


def test_the_limit_of_items_holds_for_passages(service):
    session = at(service, PUBLIC)
    passage_id = session.store_passage(content="the whale").passage.passage_id
    session.delete_passage(passage_id=passage_id)
    session.save_memory(key="other", content="text")
    service.host().update_agent(agent_id="alice", limits={"max_items": 4})

    assert refused(service, kind=_PASSAGE, name=passage_id) == "RESOURCE_EXHAUSTED QUOTA_EXCEEDED"


def test_the_budget_of_a_tier_holds(service):
    session = at(service, PUBLIC)
    note = session.add_note(content="x" * 20, tier=1).note
    session.delete_note(note_id=note.note_id, tier=1)
    session.add_note(content="y" * 20, tier=1)
    back = {"kind": _NOTE, "name": note.note_id}
    service.host().update_agent(agent_id="alice", memory_settings={"memory_char_limit": 42})

    assert refused(service, **back) == "FAILED_PRECONDITION BUDGET_EXCEEDED"
    service.host().update_agent(agent_id="alice", memory_settings={"memory_char_limit": 43})
    undelete(service, **back)
    assert session.list_notes(tier=1).usage.used_chars == 43


def test_a_disabled_tier_takes_nothing_back(service):
    session = at(service, PUBLIC)
    note = session.add_note(content="text", tier=1).note
    session.delete_note(note_id=note.note_id, tier=1)
    service.host().update_agent(agent_id="alice", memory_settings={"memory_enabled": False})

    assert refused(service, kind=_NOTE, name=note.note_id) == "FAILED_PRECONDITION TIER_DISABLED"


def test_a_refusal_shows_no_text(service):
    session = at(service, PUBLIC)
    note = session.add_note(content="canary one", tier=1).note
    session.delete_note(note_id=note.note_id, tier=1)
    session.add_note(content="canary two", tier=1)
    service.host().update_agent(agent_id="alice", memory_settings={"memory_char_limit": 10})
    answer = service.host().observe(
        "UndeleteItem", **PLAN | {"kind": _NOTE, "name": note.note_id, "classification": PUBLIC}
    )

    assert reason_of(answer) == "BUDGET_EXCEEDED"
    assert "canary" not in str(answer)


def test_a_request_names_kind_name_and_level(service):
    service.agent()
    host = service.host()

    assert invalid(host.undelete_item, agent_id="alice") == ["kind", "name", "classification"]
    assert invalid(host.undelete_item, **PLAN | {"kind": _NOTE, "classification": PUBLIC}) == ["name"]


def test_of_two_undeletes_at_once_one_wins(service):
    session = at(service, PUBLIC)
    delete_memory(session)
    with ThreadPoolExecutor(4) as threads:
        calls = [
            threads.submit(service.host().observe, "UndeleteItem", **PLAN, classification=PUBLIC) for _ in range(4)
        ]
        outcomes = sorted(call.result(20).code.name for call in calls)

    assert outcomes == ["ALREADY_EXISTS"] * 3 + ["OK"]
    assert ledger(service, PUBLIC) == [(1, "the whale"), (2, "the whale")]
    assert broken(service) == []


@contextmanager
def under_way(service: Service, level=PUBLIC):
    """An undelete that has read the deleted item, and waits for the write lock. Its outcome is in the list."""
    with service.database.connect(untrusted(level).role) as other, other.transaction():
        lock_rows(other, "shelf", strength="NO KEY UPDATE")
        thread, outcomes = in_background(service.host().observe, rpc="UndeleteItem", **PLAN, classification=level)
        wait_until_blocked(service)
        yield outcomes
    thread.join(20)


def test_what_is_erased_meanwhile_does_not_come_back(service):
    delete_memory(at(service, PUBLIC))
    with under_way(service) as outcomes:
        service.host().erase_items(**PLAN)

    assert [reason_of(outcome) for outcome in outcomes] == ["MEMORY_NOT_FOUND"]
    assert (ledger(service, PUBLIC), item_of(service, live=True)) == ([], "")


def test_an_item_saved_meanwhile_is_not_overwritten_and_the_deleted_one_is_kept(service):
    session = at(service, PUBLIC)
    delete_memory(session)
    with under_way(service) as outcomes:
        session.save_memory(key="plan", content="new")

    assert [reason_of(outcome) for outcome in outcomes] == ["ITEM_EXISTS"]
    service.host().erase_items(agent_id="alice", kind=_MEMORY, item_id=item_of(service, live=True), revision=1)
    undelete(service)
    assert session.get_memory(key="plan").memory.content == "the whale"


def test_an_item_whose_save_is_not_committed_yet_is_waited_for(service):
    """Without an error of the database: its log would quote the name."""
    session = at(service, PUBLIC)
    delete_memory(session)
    with service.database.connect(untrusted(PUBLIC).role) as writer, writer.transaction():
        writer.execute(
            "INSERT INTO item (tenant, agent, kind, name, item_id, change_id, content, create_time, update_time)"
            " SELECT tenant, agent, kind, name, gen_random_uuid(), change_id, 'new', now(), now()"
            "  FROM item WHERE name = 'plan'"
        )
        thread, outcomes = in_background(service.host().observe, rpc="UndeleteItem", **PLAN, classification=PUBLIC)
        wait_until_blocked(service)
    thread.join(20)

    assert [reason_of(outcome) for outcome in outcomes] == ["ITEM_EXISTS"]
    assert session.get_memory(key="plan").memory.content == "new"
    assert item_of(service, live=False) != ""


def test_an_erasure_that_waits_for_an_undelete_erases_the_item(service):
    delete_memory(at(service, PUBLIC))
    host = service.host()
    with service.database.as_owner() as owner:
        with owner.transaction():  # holds up the undelete once it has moved the item
            owner.execute("LOCK TABLE muniment_public.chunk IN ACCESS EXCLUSIVE MODE")
            first, undeleted = in_background(host.observe, rpc="UndeleteItem", **PLAN, classification=PUBLIC)
            wait_until_blocked(service)
            second, erased = in_background(host.observe, rpc="EraseItems", **PLAN)
            time.sleep(0.2)
        first.join(20)
        second.join(20)

    assert [outcome.code.name for outcome in (*undeleted, *erased)] == ["OK", "OK"]
    assert (ledger(service, PUBLIC), item_of(service, live=True), item_of(service, live=False)) == ([], "", "")


def test_an_agent_deleted_meanwhile_gets_nothing_back(service):
    delete_memory(at(service, PUBLIC))
    with under_way(service) as outcomes:
        thread, deleted = in_background(service.host().observe, rpc="DeleteAgent", agent_id="alice")
    thread.join(20)

    assert [outcome.code.name for outcome in (*outcomes, *deleted)] in (["OK", "OK"], ["NOT_FOUND", "OK"])
    erase_all(service.database)
    assert (ledger(service, PUBLIC), item_of(service, live=True), item_of(service, live=False)) == ([], "", "")


def test_a_raise_of_its_session_stops_it_and_it_begins_again(service, monkeypatch):
    """Its id is in the audit log while it is open."""
    delete_memory(at(service, CONFIDENTIAL))
    original, sessions = items.undelete, []

    def raised(scope, kind, name):
        sessions.append(scope._session.session_id)
        if len(sessions) == 1:
            with service.database.as_owner() as owner:
                owner.execute("UPDATE vault.conversation SET taint = 4 WHERE conversation_id = %s", [str(sessions[0])])
        original(scope, kind, name)

    monkeypatch.setattr(items, "undelete", raised)
    undelete(service, CONFIDENTIAL)

    assert len(set(sessions)) == 2
    assert at(service, CONFIDENTIAL).get_memory(key="plan").memory.classification == CONFIDENTIAL


def test_a_frozen_key_brings_nothing_back(service):
    delete_memory(at(service, PUBLIC))
    host = service.host()
    with service.database.as_owner() as owner:
        owner.execute("UPDATE vault.host_key SET freeze_time = vault.clock()")

    assert refused(service, host=host) == "UNAUTHENTICATED CREDENTIAL_INVALID"


@pytest.mark.plain_postgres("ADR 14: on a cluster, a level can delete live items of its own level")
@pytest.mark.parametrize("label", Label)
def test_the_role_of_a_label_may_move_deleted_items_only(service, label):
    """The database's own guard, whatever the server asks for."""
    session = at(service, label)
    session.save_memory(key="live", content="text")
    delete_memory(session)
    with service.database.connect(label.role) as role:
        assert role.execute("DELETE FROM deleted_item RETURNING name").fetchall() == [("plan",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            role.execute("DELETE FROM item")


def test_items_deleted_by_tag_come_back_one_by_one(service):
    session = at(service, PUBLIC)
    session.save_memories(memories=[{"key": key, "content": f"about {key}", "tags": ["old"]} for key in ("plan", "b")])
    session.delete_memories(tag="old")

    undelete(service)

    assert keys(session.list_memories()) == ["plan"]
    assert keys(session.search_memories(query="about plan")) == ["plan"]
    assert broken_invariants(service.database) == []


def test_what_comes_back_is_found_by_its_own_words(service, monkeypatch):
    """Also if others brought it back, changed it and deleted it again while the call waited for the write lock."""
    session = at(service, PUBLIC)
    delete_memory(session)
    write_lock = SessionScope.write_lock

    def after_others(scope: SessionScope) -> Any:
        with service.database.as_admin() as admin:
            admin.execute("UPDATE muniment_public.item SET content = 'the heron' WHERE name = 'plan'")
        return write_lock(scope)

    monkeypatch.setattr(SessionScope, "write_lock", after_others)
    undelete(service)

    assert session.get_memory(key="plan").memory.content == "the heron"
    assert keys(session.search_memories(query="heron")) == ["plan"]
    assert keys(session.search_memories(query="whale")) == []
