"""What an agent may store at one level: who is refused, what is counted, and what the host is shown."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_storage
from muniment_server.admin.purge import Purgeable, remove_versions
from muniment_server.domain.classification import Integrity, Label
from muniment_server.items import item_store, quotas
from muniment_server.monitor.session_scope import Query, SessionScope
from muniment_server.search.reindex import reindex
from tests.support.answers import CONFIDENTIAL, INTERNAL, LEVELS, PUBLIC, RESTRICTED, detail
from tests.support.clock import Clock
from tests.support.invariants import broken_invariants
from tests.support.services import Caller, Outcome, Service, failure_of, reason_of

BLOCKS = 3
"""The items that an agent has from its start, at PUBLIC."""
REVISION_BYTES = 256
CHUNK_BYTES = 1500
LATER = datetime.now(UTC) + timedelta(days=1)


def limit(host: Caller, **limits: int) -> None:
    host.update_agent(agent_id="alice", limits=limits)


def quota_of(outcome: Outcome) -> str:
    """Which quota refused a call, and without a time to retry: it will not help."""
    assert (outcome.code, reason_of(outcome)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    assert detail(outcome, error_details_pb2.RetryInfo) == error_details_pb2.RetryInfo()
    return str(detail(outcome, error_details_pb2.ErrorInfo).metadata["quota"])


def storage(host: Caller) -> dict[int, Any]:
    """What is stored untrusted, by level."""
    return {one.classification: one for one in host.get_agent(agent_id="alice").storage if not one.integrity}


NEW: dict[str, dict[str, Any]] = {
    "save_memory": {"key": "new", "content": "x"},
    "add_note": {"content": "x"},
    "update_block": {"label": "new", "content": "x"},
    "store_passage": {"content": "x"},
}
"""How an item of each kind is made."""


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("rpc", NEW)
def test_no_more_items_are_made_at_a_label_than_its_limit(at, host, label, rpc):
    session = at(label)
    first = BLOCKS if label is Label.PUBLIC else 0
    limit(host, max_items=first + 1)
    session.save_memory(key="old", content="x")

    assert quota_of(failure_of(getattr(session, rpc), **NEW[rpc])) == "items"

    session.save_memory(key="old", content="y")
    session.delete_memory(key="old")
    getattr(session, rpc)(**NEW[rpc])


def test_another_level_and_another_agent_have_limits_of_their_own(at, host, session):
    other = session(RESTRICTED, agent_id="bob")
    at(RESTRICTED)
    limit(host, max_items=1)
    at(RESTRICTED).save_memory(key="one", content="x")
    quota_of(failure_of(at(RESTRICTED).save_memory, key="two", content="x"))

    at(CONFIDENTIAL).save_memory(key="one", content="x")
    other.save_memory(key="one", content="x")
    other.save_memory(key="two", content="x")


def test_all_sessions_of_an_agent_at_a_level_share_its_limit(at, host, session):
    at(RESTRICTED)
    limit(host, max_items=1)
    session(RESTRICTED).save_memory(key="one", content="x")

    assert quota_of(failure_of(session(RESTRICTED).save_memory, key="two", content="x")) == "items"


def test_no_more_bytes_are_stored_than_the_limit(at, host):
    session = at(RESTRICTED)
    limit(host, max_bytes=10_000)
    session.save_memory(key="plan", content="x" * 5_000)

    assert quota_of(failure_of(session.save_memory, key="plan", content="y" * 5_000)) == "bytes"


def test_a_deletion_frees_the_index_and_a_purge_the_rest(shared, tenant, host, at):
    session = at(RESTRICTED)
    session.save_memory(key="plan", content="whale " * 500)
    full = storage(host)[RESTRICTED]
    session.delete_memory(key="plan")
    deleted = storage(host)[RESTRICTED]

    assert full.bytes > 3_000 + REVISION_BYTES + CHUNK_BYTES
    assert (full.items, deleted.items, deleted.bytes) == (1, 0, 3_000 + REVISION_BYTES)


def test_an_item_has_no_more_revisions_than_the_limit(at, host):
    session = at(RESTRICTED)
    limit(host, max_revisions=2)
    for content in "ab":
        session.save_memory(key="plan", content=content)

    assert quota_of(failure_of(session.save_memory, key="plan", content="c")) == "revisions"

    session.save_memory(key="other", content="c")
    session.delete_memory(key="plan")
    session.save_memory(key="plan", content="c")


def test_reads_and_deletions_go_on_when_nothing_more_fits(at, host):
    session = at(RESTRICTED)
    limit(host, max_items=2)
    session.save_memory(key="plan", content="whale")
    passage = session.store_passage(content="whale").passage.passage_id
    quota_of(failure_of(session.save_memory, key="other", content="x"))

    assert session.get_memory(key="plan").memory.content == "whale"
    assert session.search_passages(query="whale").results
    assert session.list_memories().memories
    session.delete_passage(passage_id=passage)
    session.delete_memory(key="plan")


def test_a_passage_that_is_there_may_be_stored_again_and_an_import_says_how_far_it_came(at, host):
    session, name = at(RESTRICTED), str(uuid.uuid4())
    limit(host, max_items=1)
    session.store_passage(content="whale", passage_id=name)

    session.store_passage(content="whale", passage_id=name)
    refused = session.observe_import({"content": "whale", "passage_id": name}, {"content": "new"})

    assert quota_of(refused) == "items"
    assert session.list_passages().passages[0].passage_id == name


def test_an_expired_item_counts_until_it_is_replaced(service: Service, clock: Clock):
    session, host, name = service.session(RESTRICTED), service.host(), str(uuid.uuid4())
    limit(host, max_items=2)
    soon = datetime.now(UTC) + timedelta(minutes=1)
    session.save_memory(key="plan", content="old", expire_time=soon)
    session.store_passage(content="old", passage_id=name, expire_time=soon)
    clock.advance(hours=1)
    session = service.session(RESTRICTED)

    assert quota_of(failure_of(session.save_memory, key="other", content="x")) == "items"
    session.save_memory(key="plan", content="new")
    session.store_passage(content="new", passage_id=name)
    assert storage(host)[RESTRICTED].items == 2


def test_an_expired_passage_no_longer_counts_when_the_import_is_refused(service: Service, clock: Clock):
    session, host, names = service.session(RESTRICTED), service.host(), [str(uuid.uuid4()) for _ in range(3)]
    session.store_passage(content="whale", passage_id=names[0])
    soon = datetime.now(UTC) + timedelta(minutes=1)
    session.import_passages(*({"content": "old", "passage_id": name, "expire_time": soon} for name in names[1:]))
    clock.advance(hours=1)

    session = service.session(RESTRICTED)
    refused = session.observe_import(*({"content": "another", "passage_id": name} for name in names))

    assert reason_of(refused) == "PASSAGE_EXISTS"
    assert storage(host)[RESTRICTED].items == 1
    assert broken_invariants(service.database) == []


RETRIES: dict[str, dict[str, Any]] = {
    "save_memory": {"key": "plan", "content": "whale", "tags": ["t"]},
    "add_note": {"content": "whale", "note_id": str(uuid.uuid4())},
    "update_block": {"label": "plan", "content": "whale"},
    "store_passage": {"content": "whale", "passage_id": str(uuid.uuid4())},
}


@pytest.mark.parametrize("rpc", RETRIES)
def test_a_write_that_changes_nothing_succeeds_at_every_limit(at, host, rpc):
    session = at(RESTRICTED)
    limit(host, max_revisions=1)  # so low that each write is checked
    first = getattr(session, rpc)(**RETRIES[rpc])
    limit(host, max_items=1, max_bytes=0, max_revisions=1)

    assert getattr(session, rpc)(**RETRIES[rpc]) == first


def test_only_the_own_level_decides_whether_a_save_changes_something(at, host):
    session = at(RESTRICTED)
    at(CONFIDENTIAL).save_memory(key="plan", content="whale")
    limit(host, max_items=0)

    assert quota_of(failure_of(session.save_memory, key="plan", content="whale")) == "items"


@pytest.mark.parametrize("changed", [{"content": "x"}, {"tags": ["x"]}, {"expire_time": LATER}])
def test_a_save_that_changes_something_is_refused_at_the_limit(at, host, changed):
    session = at(RESTRICTED)
    limit(host, max_revisions=1)
    session.save_memory(key="plan", content="whale")

    assert quota_of(failure_of(session.save_memory, **({"key": "plan", "content": "whale"} | changed))) == "revisions"


def test_the_rest_of_an_import_is_stored_if_it_fits_beside_what_exists(at, host):
    session, name = at(RESTRICTED), str(uuid.uuid4())
    limit(host, max_items=2)
    session.store_passage(content="whale " * 500, passage_id=name)
    limit(host, max_bytes=storage(host)[RESTRICTED].bytes + 100)

    session.import_passages({"content": "whale " * 500, "passage_id": name}, {"content": "new"})


@pytest.mark.parametrize("rpc", [*NEW, "edit_notes"])
def test_a_refusal_is_recorded(at, host, rpc):
    session = at(RESTRICTED)
    limit(host, max_items=1)
    if rpc != "edit_notes":  # it is refused after its first write
        session.save_memory(key="plan", content="x")
    two_notes = {"edits": [{"add": {"content": "one"}}, {"add": {"content": "two"}}]}
    quota_of(failure_of(getattr(session, rpc), **NEW.get(rpc, two_notes)))

    (event,) = [one for one in host.list_audit_events().audit_events if one.outcome == "QUOTA_EXCEEDED"]
    method = rpc.title().replace("_", "")
    assert (event.method, event.classification, event.session_id) == (method, RESTRICTED, session.session_id)


def test_an_edit_of_notes_that_does_not_fit_as_a_whole_changes_nothing(at, host):
    session = at(RESTRICTED)
    limit(host, max_items=1)

    refused = failure_of(session.edit_notes, edits=[{"add": {"content": "one"}}, {"add": {"content": "two"}}])

    assert quota_of(refused) == "items"
    assert not session.list_notes().notes


@pytest.mark.parametrize(
    ("limits", "content", "quota"),
    [
        ({"max_items": BLOCKS}, "", "items"),
        ({"max_bytes": BLOCKS * REVISION_BYTES + 9}, "x" * 10, "bytes"),
    ],
)
def test_a_shared_block_is_an_item_of_its_owner_as_any(at, host, limits, content, quota):
    at(PUBLIC)
    limit(host, **limits)

    assert quota_of(failure_of(host.create_shared_block, owner_agent_id="alice", label="z", content=content)) == quota
    assert storage(host)[PUBLIC].items == BLOCKS
    assert "z" not in [block.label for block in at(PUBLIC).list_blocks().blocks]


def test_a_block_that_fits_exactly_is_shared_and_one_that_exists_always_is(at, host):
    at(PUBLIC)
    limit(host, max_items=BLOCKS + 1, max_bytes=BLOCKS * REVISION_BYTES + 10)
    host.create_shared_block(owner_agent_id="alice", label="z", content="x" * 10)
    limit(host, max_items=0, max_bytes=0)
    host.create_shared_block(owner_agent_id="alice", label="personality")

    assert storage(host)[PUBLIC].items == BLOCKS + 1


@pytest.mark.parametrize(
    ("limits", "quota"),
    [
        ({"max_items": 2, "max_bytes": 10}, None),
        ({"max_items": 1}, "items"),
        ({"max_bytes": 9}, "bytes"),
    ],
)
def test_the_blocks_that_a_host_gives_a_new_agent_must_fit(host, limits, quota):
    blocks = [{"label": label, "content": "x" * 5} for label in "ab"]
    if quota is None:
        host.create_agent(agent_id="alice", limits=limits, initial_blocks=blocks)
        return

    refused = failure_of(host.create_agent, agent_id="alice", limits=limits, initial_blocks=blocks)

    assert quota_of(refused) == quota
    assert list(host.list_agents().agents) == []


def test_the_blocks_of_an_agent_that_is_given_none_always_fit(host):
    host.create_agent(agent_id="alice", limits={"max_items": 0, "max_bytes": 0})

    assert storage(host)[PUBLIC].items == BLOCKS


def test_the_host_sees_what_is_stored_and_is_warned_before_it_is_full(at, host):
    limit_of_items = 5
    at(RESTRICTED)
    limit(host, max_items=limit_of_items)
    for number in range(4):
        at(RESTRICTED).save_memory(key=str(number), content="x")
    at(CONFIDENTIAL).save_memory(key="plan", content="x")

    assert [(*LEVELS,) == tuple(storage(host))] == [True]
    assert (storage(host)[RESTRICTED].items, storage(host)[RESTRICTED].nearly_full) == (4, True)
    assert (storage(host)[CONFIDENTIAL].items, storage(host)[CONFIDENTIAL].nearly_full) == (1, False)


def test_an_agent_is_nearly_full_only_where_it_has_stored_something(host):
    """At PUBLIC it has its first blocks."""
    host.create_agent(agent_id="alice", limits={"max_items": 0, "max_bytes": 0})

    assert {level: one.nearly_full for level, one in storage(host).items()} == {
        level: level is PUBLIC for level in LEVELS
    }


def test_the_host_sees_the_levels_up_to_the_ceiling_of_the_agent(host):
    host.create_agent(agent_id="low", ceiling=INTERNAL)

    assert [one.classification for one in host.get_agent(agent_id="low").storage] == [PUBLIC, INTERNAL]


def test_the_host_sees_what_is_stored_trusted_apart_where_there_is_something(at, host, session):
    at(PUBLIC)
    limit(host, max_items=5)
    for number in range(4):
        at(Label.INTERNAL_TRUSTED).save_memory(key=str(number), content="x")
    at(INTERNAL).save_memory(key="plan", content="x")

    found = host.get_agent(agent_id="alice").storage
    assert [(one.classification, one.integrity, one.items, one.nearly_full) for one in found] == [
        (PUBLIC, Integrity.UNTRUSTED, BLOCKS, False),
        (INTERNAL, Integrity.TRUSTED, 4, True),
        (INTERNAL, Integrity.UNTRUSTED, 1, False),
        (CONFIDENTIAL, Integrity.UNTRUSTED, 0, False),
        (RESTRICTED, Integrity.UNTRUSTED, 0, False),
    ]


def test_an_agent_far_from_its_limits_is_not_summed_up_for_each_write(at, host, monkeypatch):
    session, asked = at(RESTRICTED), []
    look_up = SessionScope.look_up

    def counted(scope: SessionScope, query: Query[Any]) -> Any:
        asked.append(query.name)
        return look_up(scope, query)

    monkeypatch.setattr(SessionScope, "look_up", counted)
    for number in range(5):
        session.save_memory(key=str(number), content="x")

    assert asked == ["get_room"]


def test_a_lower_limit_holds_once_the_room_is_no_longer_taken_as_known(at, host, monkeypatch):
    session = at(RESTRICTED)
    session.save_memory(key="one", content="x")
    limit(host, max_items=1)
    session.save_memory(key="two", content="x")

    monkeypatch.setattr(quotas, "time", SimpleNamespace(monotonic=lambda: float("inf")))

    assert quota_of(failure_of(session.save_memory, key="three", content="x")) == "items"


def test_room_that_is_known_at_one_level_is_not_taken_for_room_at_another(at, host, session, monkeypatch):
    monkeypatch.setattr(quotas, "_PLENTY_ITEMS", 1)
    monkeypatch.setattr(quotas, "_PLENTY_BYTES", 0)
    raised = session(PUBLIC)
    limit(host, max_items=BLOCKS + 2)
    for number in range(BLOCKS + 2):
        at(INTERNAL).save_memory(key=str(number), content="x")
    raised.save_memory(key="plan", content="x")

    host.raise_taint(session_id=raised.session_id, taint=INTERNAL)

    assert quota_of(failure_of(raised.save_memory, key="plan", content="x")) == "items"


def test_reindex_counts_again_what_is_stored(service: Service):
    session = service.session(RESTRICTED)
    session.save_memory(key="plan", content="whale")
    session.store_passage(content="whale")
    service.session(Label.INTERNAL_TRUSTED).save_memory(key="plan", content="whale")
    counted = service.host().get_agent(agent_id="alice").storage
    with service.database.as_owner() as owner:
        owner.execute("UPDATE muniment_public.storage SET items = items + 1")
        owner.execute("DELETE FROM muniment_restricted.storage")
        owner.execute("DELETE FROM muniment_internal_trusted.storage")

    with connect_operator(service.database.admin) as operator:
        broken = {Label.PUBLIC, Label.INTERNAL_TRUSTED, Label.RESTRICTED}
        assert broken_storage(operator) == {label: int(label in broken) for label in Label}
        list(reindex(operator.connection))
        assert not any(broken_storage(operator).values())
    assert service.host().get_agent(agent_id="alice").storage == counted


def test_after_everything_that_changes_what_is_stored_it_is_counted_right(service: Service, clock: Clock, monkeypatch):
    """Saves, the same again, expiry, deletions, sharing, folding, a purge."""
    monkeypatch.setattr(item_store, "_FOLD_ONCE_IN", 2)
    soon = datetime.now(UTC) + timedelta(minutes=1)
    host, names = service.host(), {label: str(uuid.uuid4()) for label in Label}
    for label in Label:
        session = service.session(label)
        for content in ("a", "b", "b"):
            session.save_memory(key="plan", content=content)
            session.save_memory(key="brief", content=content, expire_time=soon)
            session.update_block(label="plan", content=content)
            session.import_passages({"content": "x", "passage_id": names[label], "expire_time": soon})
            session.store_passage(content=content)
        session.add_note(content="x")
        session.delete_memory(key="plan")
        session.delete_block(label="plan")
    host.create_shared_block(owner_agent_id="alice", label="shared", content="text")
    assert broken_invariants(service.database) == []
    clock.advance(hours=1)
    for label in Label:
        session = service.session(label)
        session.save_memory(key="brief", content="new")
        session.import_passages({"content": "new", "passage_id": names[label]})
    assert broken_invariants(service.database) == []

    with connect_operator(service.database.admin) as operator:
        purged = [*remove_versions(operator, Purgeable(), before=datetime.now(UTC) + timedelta(days=1))]

    assert [(each.items > 0, each.revisions > 0) for each in purged] == [(True, True)] * 8
    assert [what for what in broken_invariants(service.database) if "miscounted" in what] == []


def test_a_batch_counts_all_its_memories(service):
    session = service.session(INTERNAL)
    limit(service.host(), max_items=3)
    session.save_memory(key="a", content="x")

    outcome = failure_of(session.save_memories, memories=[{"key": key, "content": "x"} for key in "abcd"])

    assert (outcome.code, reason_of(outcome)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    assert detail(outcome, error_details_pb2.ErrorInfo).metadata["quota"] == "items"
    assert len(session.save_memories(memories=[{"key": key, "content": "x"} for key in "abc"]).memories) == 3
    assert len(session.save_memories(memories=[{"key": key, "content": "x"} for key in "abc"]).memories) == 3
    assert broken_invariants(service.database) == []


def test_a_deletion_of_many_makes_room(service):
    session = service.session(INTERNAL)
    limit(service.host(), max_items=2)
    session.save_memories(memories=[{"key": key, "content": "x", "tags": ["old"]} for key in "ab"])

    session.delete_memories(tag="old")

    assert len(session.save_memories(memories=[{"key": key, "content": "x"} for key in "cd"]).memories) == 2
    assert broken_invariants(service.database) == []
