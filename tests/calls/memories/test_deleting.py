"""GetMemory and DeleteMemory."""

from __future__ import annotations

import pytest

from tests.support.answers import INTERNAL, LEVELS, PAIRS, PUBLIC, RESTRICTED, UP, events, in_future, refusal
from tests.support.services import failure_of

GONE = "NOT_FOUND MEMORY_NOT_FOUND"


@pytest.mark.parametrize(("written", "reader"), PAIRS)
def test_c01_a_memory_is_seen_at_its_level_and_above(at, written, reader):
    at(written).save_memory(key="plan", content="text")

    if written <= reader:
        assert at(reader).get_memory(key="plan").memory.classification == written
    else:
        assert refusal(at(reader).get_memory, key="plan") == GONE


@pytest.mark.parametrize(("low", "high"), UP)
def test_get_returns_the_highest_visible_version(at, low, high):
    at(low).save_memory(key="plan", content="low")
    at(high).save_memory(key="plan", content="high")

    seen = {level: at(level).get_memory(key="plan").memory.content for level in LEVELS if level >= low}

    assert seen == {level: "high" if level >= high else "low" for level in LEVELS if level >= low}


def test_absent_deleted_expired_and_above_are_one_not_found(service, clock):
    """Byte for byte: code, text, trailers."""
    session, above = service.session(PUBLIC), service.session(INTERNAL)
    above.save_memory(key="above", content="text")
    session.save_memory(key="deleted", content="text")
    session.delete_memory(key="deleted")
    session.save_memory(key="expired", content="text", expire_time=in_future(hours=1))
    clock.advance(hours=2)

    outcomes = {failure_of(session.get_memory, key=key) for key in ("absent", "deleted", "expired", "above")}

    assert len(outcomes) == 1


@pytest.mark.parametrize(("low", "high"), UP)
def test_c13_deleting_what_exists_only_above_is_like_deleting_nothing(at, low, high):
    etag = at(high).save_memory(key="plan", content="high").memory.etag

    outcomes = {
        failure_of(at(low).delete_memory, key="plan"),
        failure_of(at(low).delete_memory, key="plan", etag=etag),
        failure_of(at(low).delete_memory, key="never"),
        failure_of(at(low).delete_memory, key="never", etag=etag),
    }

    assert len(outcomes) == 1
    assert at(high).get_memory(key="plan").memory.content == "high"


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_version_cannot_be_deleted_even_the_second_time(at, low, high):
    etag = at(low).save_memory(key="plan", content="low").memory.etag

    refusals = [refusal(at(high).delete_memory, key="plan", etag=tag) for tag in ("", etag, "")]

    assert refusals == ["FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"] * 3
    assert at(low).get_memory(key="plan").memory.content == "low"


@pytest.mark.parametrize("level", LEVELS)
def test_a_deleted_memory_is_gone(at, level):
    at(level).save_memory(key="plan", content="text")
    answer = at(level).delete_memory(key="plan")

    assert answer.revealed == 0
    assert refusal(at(level).get_memory, key="plan") == GONE


def test_a_second_delete_finds_nothing(at):
    at(PUBLIC).save_memory(key="plan", content="text")
    at(PUBLIC).delete_memory(key="plan")

    assert refusal(at(PUBLIC).delete_memory, key="plan") == GONE


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_delete_says_at_which_level_a_lower_version_is_seen_again(at, low, high):
    at(low).save_memory(key="plan", content="low")
    at(high).save_memory(key="plan", content="high")

    assert at(high).delete_memory(key="plan").revealed == low
    assert at(high).get_memory(key="plan").memory.content == "low"
    assert refusal(at(high).delete_memory, key="plan") == "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"


def test_a_delete_reveals_the_highest_of_the_lower_versions(at):
    for level in LEVELS:
        at(level).save_memory(key="plan", content=level.name)

    revealed = [at(level).delete_memory(key="plan").revealed for level in reversed(LEVELS)]

    assert revealed == [3, 2, 1, 0]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c18_a_low_delete_leaves_the_higher_version(at, low, high):
    at(low).save_memory(key="plan", content="low")
    before = at(high).save_memory(key="plan", content="high").memory

    assert at(low).delete_memory(key="plan").revealed == 0
    assert at(high).get_memory(key="plan").memory == before


@pytest.mark.parametrize("level", LEVELS)
def test_a_delete_with_the_current_etag_deletes(at, level):
    etag = at(level).save_memory(key="plan", content="text").memory.etag
    at(level).delete_memory(key="plan", etag=etag)

    assert refusal(at(level).get_memory, key="plan") == GONE


def test_a_delete_with_a_stale_etag_is_refused(at):
    stale = at(PUBLIC).save_memory(key="plan", content="1").memory.etag
    at(PUBLIC).save_memory(key="plan", content="2")

    assert refusal(at(PUBLIC).delete_memory, key="plan", etag=stale) == "ABORTED ETAG_STALE"
    assert at(PUBLIC).get_memory(key="plan").memory.content == "2"


def test_a_delete_with_the_etag_of_a_shadowed_version_is_refused(at):
    low = at(PUBLIC).save_memory(key="plan", content="low").memory.etag
    at(RESTRICTED).save_memory(key="plan", content="high")

    assert refusal(at(RESTRICTED).delete_memory, key="plan", etag=low) == "ABORTED ETAG_STALE"


def test_a_delete_with_the_etag_of_an_earlier_item_of_the_name_is_refused(at):
    earlier = at(PUBLIC).save_memory(key="plan", content="1").memory.etag
    at(PUBLIC).delete_memory(key="plan")
    at(PUBLIC).save_memory(key="plan", content="1")

    assert refusal(at(PUBLIC).delete_memory, key="plan", etag=earlier) == "ABORTED ETAG_STALE"


def test_when_a_high_version_expires_the_lower_one_is_simply_seen_again(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    low.save_memory(key="plan", content="low whale")
    high.save_memory(key="plan", content="high whale", expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert high.get_memory(key="plan").memory.content == "low whale"
    assert [memory.content for memory in high.list_memories().memories] == ["low whale"]
    assert [found.memory.content for found in high.search_memories(query="whale").results] == ["low whale"]


def test_an_expired_memory_is_as_good_as_deleted_in_every_rpc(service, clock):
    session = service.session(PUBLIC)
    session.save_memory(key="plan", content="whale", tags=["a"], expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert refusal(session.get_memory, key="plan") == GONE
    assert refusal(session.delete_memory, key="plan") == GONE
    assert list(session.list_memories().memories) == []
    assert list(session.list_memories(tag="a").memories) == []
    assert list(session.search_memories(query="whale plan").results) == []


def test_an_expired_own_version_over_a_lower_one_cannot_be_deleted(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    low.save_memory(key="plan", content="low")
    high.save_memory(key="plan", content="high", expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert refusal(high.delete_memory, key="plan") == "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"


def test_a_delete_reveals_no_expired_version(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    low.save_memory(key="plan", content="low", expire_time=in_future(hours=1))
    high.save_memory(key="plan", content="high")
    clock.advance(hours=2)

    assert high.delete_memory(key="plan").revealed == 0


def test_a_delete_is_one_event_and_a_delete_of_nothing_is_none(at, host):
    at(PUBLIC).save_memory(key="plan", content="text")
    at(PUBLIC).delete_memory(key="plan")
    failure_of(at(PUBLIC).delete_memory, key="plan")

    assert [event.outcome for event in events(host) if event.method == "DeleteMemory"] == ["OK"]
