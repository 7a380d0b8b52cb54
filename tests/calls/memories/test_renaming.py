"""RenameMemory, and what has to do with it elsewhere: quotas, erasure, undeletion, purges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from google.rpc import error_details_pb2

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_ledgers
from muniment_server.admin.purge import purgeable, remove_versions
from muniment_server.domain.items import ItemKind
from tests.support.answers import INTERNAL, PUBLIC, UP, detail, events, in_future, invalid, keys, refusal
from tests.support.clock import Clock
from tests.support.invariants import broken_invariants
from tests.support.services import failure_of

MEMORY = 1
GONE = "NOT_FOUND MEMORY_NOT_FOUND"


def test_the_version_moves_with_all_that_it_has(at):
    session = at(INTERNAL)
    first = session.save_memory(
        key="plan", content="ship it", tags=["work", "now"], expire_time=in_future(days=1)
    ).memory

    renamed = session.rename_memory(key="plan", new_key="release").memory

    assert renamed == session.get_memory(key="release").memory
    assert (renamed.content, list(renamed.tags), renamed.classification) == ("ship it", ["work", "now"], INTERNAL)
    assert (renamed.create_time, renamed.expire_time) == (first.create_time, first.expire_time)
    assert renamed.update_time.ToNanoseconds() >= first.update_time.ToNanoseconds()
    assert renamed.etag != first.etag
    assert refusal(session.get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"


def test_it_is_found_by_the_words_of_its_new_key_alone(at):
    at(PUBLIC).save_memory(key="harbor", content="a text")
    at(PUBLIC).rename_memory(key="harbor", new_key="lighthouse")

    assert keys(at(PUBLIC).search_memories(query="lighthouse")) == ["lighthouse"]
    assert keys(at(PUBLIC).search_memories(query="harbor")) == []


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_version_of_the_old_key_is_revealed(at, low, high):
    at(low).save_memory(key="plan", content="low")
    at(high).save_memory(key="plan", content="high")

    assert at(high).rename_memory(key="plan", new_key="release").revealed == low
    assert at(high).get_memory(key="plan").memory.content == "low"
    assert at(low).get_memory(key="plan").memory.content == "low"


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_source_cannot_be_renamed(at, low, high, host):
    at(low).save_memory(key="plan", content="low")

    assert refusal(at(high).rename_memory, key="plan", new_key="x") == "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"
    assert [event.outcome for event in events(host) if event.method == "RenameMemory"] == ["WRITE_LEVEL_MISMATCH"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c13_a_source_that_exists_only_above_is_like_none(at, low, high):
    at(high).save_memory(key="plan", content="high")

    hidden = failure_of(at(low).rename_memory, key="plan", new_key="x")
    assert hidden == failure_of(at(low).rename_memory, key="never", new_key="x")
    assert hidden.code.name == "NOT_FOUND"


@pytest.mark.parametrize("level", [PUBLIC, INTERNAL])
def test_a_visible_target_is_refused(at, level):
    at(INTERNAL).save_memory(key="plan", content="plan")
    at(level).save_memory(key="taken", content="taken")

    assert refusal(at(INTERNAL).rename_memory, key="plan", new_key="taken") == "ALREADY_EXISTS MEMORY_EXISTS"
    assert at(INTERNAL).get_memory(key="plan").memory.content == "plan"
    assert at(INTERNAL).get_memory(key="taken").memory.content == "taken"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c12_a_key_that_exists_only_above_is_as_if_absent(at, low, high):
    at(high).save_memory(key="taken", content="high")
    at(low).save_memory(key="plan", content="low")

    assert at(low).rename_memory(key="plan", new_key="taken").memory.content == "low"
    assert at(high).get_memory(key="taken").memory.content == "high"


def test_an_etag_must_be_current(at):
    stale = at(PUBLIC).save_memory(key="plan", content="one").memory.etag
    current = at(PUBLIC).save_memory(key="plan", content="two").memory.etag

    assert refusal(at(PUBLIC).rename_memory, key="plan", new_key="x", etag=stale) == "ABORTED ETAG_STALE"
    assert at(PUBLIC).rename_memory(key="plan", new_key="x", etag=current).memory.content == "two"


def test_the_keys_must_be_keys_and_differ(at):
    at(PUBLIC).save_memory(key="\u00e9", content="text")

    assert invalid(at(PUBLIC).rename_memory, key="\u00e9", new_key="e\u0301") == ["new_key"]
    assert invalid(at(PUBLIC).rename_memory, key="a ", new_key="b") == ["key"]
    assert invalid(at(PUBLIC).rename_memory, key="a", new_key="b ") == ["new_key"]
    assert invalid(at(PUBLIC).rename_memory, key="", new_key="") == ["key", "new_key"]


def test_an_expired_target_gives_way_and_an_expired_source_is_none(service, clock):
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="plan")
    session.save_memory(key="taken", content="taken", expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert refusal(session.rename_memory, key="taken", new_key="x") == "NOT_FOUND MEMORY_NOT_FOUND"
    assert session.rename_memory(key="plan", new_key="taken").memory.content == "plan"
    assert keys(session.list_memories()) == ["taken"]


def test_there_and_back_again(at):
    at(PUBLIC).save_memory(key="plan", content="plan")
    at(PUBLIC).rename_memory(key="plan", new_key="x")
    at(PUBLIC).save_memory(key="plan", content="another")

    assert refusal(at(PUBLIC).rename_memory, key="x", new_key="plan") == "ALREADY_EXISTS MEMORY_EXISTS"
    at(PUBLIC).delete_memory(key="plan")
    assert at(PUBLIC).rename_memory(key="x", new_key="plan").memory.content == "plan"


def test_one_audit_row_with_the_item_and_its_new_revision(at, host):
    at(PUBLIC).save_memory(key="plan", content="plan")
    at(PUBLIC).rename_memory(key="plan", new_key="x")

    saved, renamed = [event for event in events(host) if event.method in {"SaveMemory", "RenameMemory"}]
    assert (renamed.method, renamed.outcome, renamed.item_id) == ("RenameMemory", "OK", saved.item_id)
    assert (saved.revision, renamed.revision) == (1, 2)


def test_a_rename_is_no_further_item_but_a_revision(service):
    session, host = service.session(INTERNAL), service.host()
    host.update_agent(agent_id="alice", limits={"max_items": 2, "max_revisions": 2})
    session.save_memory(key="a", content="x")
    session.save_memory(key="b", content="x")
    host.update_agent(agent_id="alice", limits={"max_items": 1})

    assert session.rename_memory(key="a", new_key="c").memory.key == "c"
    refused = failure_of(session.rename_memory, key="c", new_key="d")

    assert detail(refused, error_details_pb2.ErrorInfo).metadata["quota"] == "revisions"
    assert session.get_memory(key="c").memory.content == "x"
    assert broken_invariants(service.database) == []


def ledger(service, name):
    """The revisions of a name that are left at INTERNAL, and their contents."""
    query = "SELECT revision, content FROM muniment_internal.revision WHERE name = %s ORDER BY update_time"
    with service.database.as_owner() as owner:
        return [tuple(row) for row in owner.execute(query, [name]).fetchall()]


@pytest.mark.parametrize("name", ["old", "new"])
def test_it_is_erased_by_either_name_with_all_its_revisions(service, name):
    session = service.session(INTERNAL)
    session.save_memory(key="old", content="one")
    session.save_memory(key="old", content="two")
    session.rename_memory(key="old", new_key="new")
    session.save_memory(key="old", content="another")

    service.host().erase_items(agent_id="alice", kind=MEMORY, name=name)

    assert keys(session.list_memories()) == ([] if name == "old" else ["old"])
    assert ledger(service, "new") == []
    assert ledger(service, "old") == ([] if name == "old" else [(1, "another")])
    assert keys(session.search_memories(query="two new")) == []
    assert [one for one in broken_invariants(service.database) if "without its effect" not in one] == []


def test_one_revision_under_an_earlier_name_is_erased_alone(service):
    session = service.session(INTERNAL)
    session.save_memory(key="old", content="one")
    session.rename_memory(key="old", new_key="new")
    (item_id,) = {event.item_id for event in events(service.host()) if event.method == "RenameMemory"}

    service.host().erase_items(agent_id="alice", kind=MEMORY, item_id=item_id, revision=1)

    assert (ledger(service, "old"), ledger(service, "new")) == ([], [(2, "one")])
    assert session.get_memory(key="new").memory.content == "one"


def test_it_comes_back_under_the_name_that_it_had_when_it_was_deleted(service):
    session, host = service.session(INTERNAL), service.host()
    target = {"agent_id": "alice", "kind": MEMORY, "classification": INTERNAL}
    session.save_memory(key="plan", content="the whale", tags=["sea"])
    session.rename_memory(key="plan", new_key="release")

    assert refusal(host.undelete_item, name="plan", **target) == GONE  # it is not deleted, it has another name
    session.delete_memory(key="release")
    assert refusal(host.undelete_item, name="plan", **target) == GONE
    host.undelete_item(name="release", **target)

    back = session.get_memory(key="release").memory
    assert (back.content, list(back.tags)) == ("the whale", ["sea"])
    assert ledger(service, "plan") == [(1, "the whale")]
    assert ledger(service, "release") == [(2, "the whale"), (3, "the whale")]
    assert broken_invariants(service.database) == []


def test_an_expired_memory_that_gave_way_to_a_rename_stays_gone(service):
    session = service.session(INTERNAL)
    clock = Clock(service.database)
    session.save_memory(key="plan", content="old", expire_time=in_future(hours=1))
    clock.advance(hours=2)
    session.save_memory(key="other", content="new")
    session.rename_memory(key="other", new_key="plan")
    session.rename_memory(key="plan", new_key="third")

    target = {"agent_id": "alice", "kind": MEMORY, "classification": INTERNAL, "name": "plan"}
    assert refusal(service.host().undelete_item, **target) == GONE
    assert broken_invariants(service.database) == []


def purge(service, name):
    """Remove the old versions of a name, as `muniment purge` does, and return how many ledgers are broken."""
    with connect_operator(service.database.admin) as operator:
        what = purgeable(operator, tenant="acme", agent_id="alice", kind=ItemKind.MEMORY, name=name)
        list(remove_versions(operator, what, before=datetime.now(UTC) + timedelta(hours=1)))
        return sum(broken_ledgers(operator).values())


def test_a_purge_leaves_no_version_of_an_earlier_name(service):
    session = service.session(INTERNAL)
    session.save_memory(key="a", content="text")
    session.rename_memory(key="a", new_key="b")
    session.delete_memory(key="b")

    purge(service, "b")

    assert (ledger(service, "a"), ledger(service, "b")) == ([], [])


def test_a_purge_of_a_name_that_it_had_for_a_while_leaves_no_gap(service):
    session = service.session(INTERNAL)
    session.save_memory(key="a", content="text")
    session.rename_memory(key="a", new_key="b")
    session.rename_memory(key="b", new_key="a")

    assert purge(service, "b") == 0
    assert (ledger(service, "a"), ledger(service, "b")) == ([(3, "text")], [])
