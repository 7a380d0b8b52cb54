"""RenameMemory."""

from __future__ import annotations

import pytest

from tests.support.answers import INTERNAL, PUBLIC, UP, events, in_future, invalid, keys, refusal
from tests.support.services import failure_of


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
