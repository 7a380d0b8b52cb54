"""DeleteMemories."""

from __future__ import annotations

import pytest

from tests.support.answers import INTERNAL, PUBLIC, UP, events, heavy, in_future, invalid, keys
from tests.support.services import failure_of


def save(session, *key_names, **fields):
    """Save memories by key."""
    session.save_memories(memories=[{"key": key, "content": f"about {key}", **fields} for key in key_names])


def test_what_has_the_tag_is_deleted(at, host):
    save(at(PUBLIC), "a", "b", tags=["old", "x"])
    save(at(PUBLIC), "c", tags=["older"])

    deleted = at(PUBLIC).delete_memories(tag=" old ")

    assert (deleted.deleted_count, deleted.more) == (2, False)
    assert keys(at(PUBLIC).list_memories()) == ["c"]
    assert keys(at(PUBLIC).search_memories(query="about")) == ["c"]
    rows = [event for event in events(host) if event.method == "DeleteMemories"]
    assert {(row.outcome, row.revision, row.kind) for row in rows} == {("OK", 1, 1)}
    assert len({row.item_id for row in rows}) == 2


def test_none_is_no_failure(at, host):
    deleted = at(PUBLIC).delete_memories(tag="old")

    assert (deleted.deleted_count, deleted.more) == (0, False)
    assert [event for event in events(host) if event.method == "DeleteMemories"] == []


@pytest.mark.parametrize(("low", "high"), UP)
def test_other_levels_are_neither_deleted_nor_counted(at, low, high):
    save(at(low), "a", "b", tags=["old"])
    save(at(high), "a", "c", tags=["old"])

    assert at(high).delete_memories(tag="old").deleted_count == 2
    assert [(one.key, one.classification) for one in at(high).list_memories().memories] == [("a", low), ("b", low)]
    assert at(low).delete_memories(tag="old").deleted_count == 2


def test_c30_what_exists_only_above_is_like_nothing(at):
    nothing = at(PUBLIC).delete_memories(tag="old")
    save(at(INTERNAL), "a", tags=["old"])

    assert at(PUBLIC).delete_memories(tag="old") == nothing
    assert keys(at(INTERNAL).list_memories()) == ["a"]


def test_a_shadowed_tag_is_the_one_of_the_own_version(at):
    save(at(PUBLIC), "a", tags=["old"])
    save(at(INTERNAL), "a", tags=["new"])

    assert at(INTERNAL).delete_memories(tag="old").deleted_count == 0
    assert at(INTERNAL).get_memory(key="a").memory.classification == INTERNAL


def test_a_thousand_at_a_time_in_the_order_of_their_keys(at):
    for part in range(11):
        save(at(PUBLIC), *(f"k{part * 100 + n:04}" for n in range(100)), tags=["old"])

    first = at(PUBLIC).delete_memories(tag="old")
    left = keys(at(PUBLIC).list_memories())
    second = at(PUBLIC).delete_memories(tag="old")

    assert (first.deleted_count, first.more) == (1000, True)
    assert (left[0], len(left)) == ("k1000", 50)
    assert (second.deleted_count, second.more) == (100, False)


def test_fewer_of_long_ones(at):
    for n in range(70):
        at(PUBLIC).save_memory(key=f"k{n:02}", content=heavy(64 * 1024), tags=["old"])

    first = at(PUBLIC).delete_memories(tag="old")

    assert (first.deleted_count, first.more) == (64, True)
    assert keys(at(PUBLIC).list_memories())[0] == "k64"


def test_expired_ones_are_not_counted(service, clock):
    session = service.session(PUBLIC)
    save(session, "a", tags=["old"], expire_time=in_future(hours=1))
    save(session, "b", tags=["old"])
    clock.advance(hours=2)

    assert session.delete_memories(tag="old").deleted_count == 1


def test_a_tag_is_required(at):
    assert invalid(at(PUBLIC).delete_memories) == ["tag"]
    assert invalid(at(PUBLIC).delete_memories, tag="  ") == ["tag"]
    assert failure_of(at(PUBLIC).delete_memories, tag="x" * 65).code.name == "INVALID_ARGUMENT"
