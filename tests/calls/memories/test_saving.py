"""SaveMemory."""

from __future__ import annotations

from datetime import UTC

import pytest

from tests.support.answers import LEVELS, PAIRS, PUBLIC, RESTRICTED, UP, events, in_future, invalid, refusal
from tests.support.services import failure_of


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_save_creates_a_version_at_the_own_level_only(at, low, high):
    at(high).save_memory(key="plan", content="high")

    assert refusal(at(low).get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"


@pytest.mark.parametrize("level", LEVELS)
def test_a_saved_memory_is_labeled_with_the_taint(at, level):
    saved = at(level).save_memory(key="plan", content="text").memory

    assert saved.classification == level
    assert at(level).get_memory(key="plan").memory == saved


@pytest.mark.parametrize(("low", "high"), UP)
def test_c11_a_save_leaves_the_lower_version_untouched(at, low, high):
    before = at(low).save_memory(key="plan", content="low", tags=["a"]).memory
    at(high).save_memory(key="plan", content="high", tags=["b"])

    assert at(low).get_memory(key="plan").memory == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_save_leaves_the_higher_version_untouched(at, low, high):
    before = at(high).save_memory(key="plan", content="high").memory
    at(low).save_memory(key="plan", content="low")

    after = at(high).get_memory(key="plan").memory
    after.ClearField("newer_below")
    assert after == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_c10_the_answer_to_a_save_is_the_same_whether_or_not_a_higher_version_exists(at, low, high):
    at(high).save_memory(key="above", content="high")

    above, alone = (at(low).save_memory(key=key, content="low").memory for key in ("above", "alone"))

    for saved in (above, alone):
        for unlike in ("key", "etag", "create_time", "update_time"):
            assert saved.HasField(unlike) if unlike.endswith("time") else getattr(saved, unlike)
            saved.ClearField(unlike)
    assert above == alone


def test_a_save_replaces_the_content_and_keeps_the_create_time(at):
    first = at(PUBLIC).save_memory(key="plan", content="one").memory
    second = at(PUBLIC).save_memory(key="plan", content="two").memory

    assert (second.content, second.create_time) == ("two", first.create_time)
    assert second.update_time.ToDatetime() > first.update_time.ToDatetime()
    assert second.etag != first.etag


def test_tags_are_replaced_not_merged(at):
    at(PUBLIC).save_memory(key="plan", content="text", tags=["a", "b"])
    at(PUBLIC).save_memory(key="plan", content="text", tags=["c"])

    assert at(PUBLIC).get_memory(key="plan").memory.tags == ["c"]


def test_no_tags_given_leaves_none(at):
    at(PUBLIC).save_memory(key="plan", content="text", tags=["a"])
    at(PUBLIC).save_memory(key="plan", content="text")

    assert at(PUBLIC).get_memory(key="plan").memory.tags == []


def test_no_expiry_given_leaves_none(at):
    at(PUBLIC).save_memory(key="plan", content="text", expire_time=in_future(days=1))
    saved = at(PUBLIC).save_memory(key="plan", content="text").memory

    assert not saved.HasField("expire_time")


@pytest.mark.parametrize("level", LEVELS)
def test_a_save_that_changes_nothing_returns_the_stored_version(at, level):
    same = {"key": "plan", "content": "text", "tags": ["a", "b"], "expire_time": in_future(days=1)}
    first = at(level).save_memory(**same).memory

    assert at(level).save_memory(**same).memory == first


def test_a_save_that_changes_nothing_is_no_event(at, host):
    """No revision and no audit row: it is safe to retry as often as needed."""
    for _ in range(3):
        at(PUBLIC).save_memory(key="plan", content="text")

    assert [event.revision for event in events(host) if event.method == "SaveMemory"] == [1]


@pytest.mark.parametrize("change", [{"content": "other"}, {"tags": ["b", "a"]}, {"expire_time": in_future(days=9)}])
def test_any_change_is_a_new_version(at, change):
    """The order of tags is theirs to choose, so it counts."""
    same = {"key": "plan", "content": "text", "tags": ["a", "b"], "expire_time": in_future(days=1)}
    first = at(PUBLIC).save_memory(**same).memory

    assert at(PUBLIC).save_memory(**(same | change)).memory.etag != first.etag


@pytest.mark.parametrize(("seen", "level"), [(low, high) for low, high in PAIRS if low <= high])
def test_an_etag_is_checked_against_the_version_that_get_returns(at, seen, level):
    etag = at(seen).save_memory(key="plan", content="one").memory.etag

    saved = at(level).save_memory(key="plan", content="two", etag=etag).memory

    assert (saved.content, saved.classification) == ("two", level)


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_etag_of_a_shadowed_version_is_stale(at, low, high):
    shadowed = at(low).save_memory(key="plan", content="low").memory.etag
    at(high).save_memory(key="plan", content="high")

    assert refusal(at(high).save_memory, key="plan", content="new", etag=shadowed) == "ABORTED ETAG_STALE"
    assert at(high).get_memory(key="plan").memory.content == "high"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c15_the_etag_of_a_higher_version_is_as_stale_as_one_that_never_existed(at, low, high):
    at(low).save_memory(key="plan", content="low")
    above = at(high).save_memory(key="plan", content="high").memory.etag
    elsewhere = at(low).save_memory(key="other", content="low").memory.etag

    assert failure_of(at(low).save_memory, key="plan", content="x", etag=above) == failure_of(
        at(low).save_memory, key="plan", content="x", etag=elsewhere
    )


def test_a_stale_etag_is_refused_even_with_the_same_text(at):
    """Two equal increments are two."""
    first = at(PUBLIC).save_memory(key="counter", content="1").memory.etag
    at(PUBLIC).save_memory(key="counter", content="2", etag=first)

    assert refusal(at(PUBLIC).save_memory, key="counter", content="2", etag=first) == "ABORTED ETAG_STALE"


def test_the_current_etag_with_the_same_text_changes_nothing(at):
    first = at(PUBLIC).save_memory(key="plan", content="1").memory

    assert at(PUBLIC).save_memory(key="plan", content="1", etag=first.etag).memory == first


@pytest.mark.parametrize(("low", "high"), [(low, high) for low, high in PAIRS if low <= high])
def test_with_the_etag_absent_a_save_only_creates(at, low, high):
    created = at(low).save_memory(key="plan", content="one", etag="absent").memory

    assert refusal(at(high).save_memory, key="plan", content="one", etag="absent") == "ABORTED ETAG_STALE"
    assert at(high).get_memory(key="plan").memory == created


@pytest.mark.parametrize(("low", "high"), UP)
def test_c15_a_higher_version_is_as_absent_as_none(at, low, high):
    at(high).save_memory(key="plan", content="high")

    assert at(low).save_memory(key="plan", content="low", etag="absent").memory.content == "low"
    assert at(high).get_memory(key="plan").memory.content == "high"


def test_what_was_deleted_is_absent(at):
    at(PUBLIC).save_memory(key="plan", content="one")
    at(PUBLIC).delete_memory(key="plan")

    assert at(PUBLIC).save_memory(key="plan", content="two", etag="absent").memory.content == "two"


def test_an_etag_where_nothing_is_there_is_stale(at):
    etag = at(PUBLIC).save_memory(key="plan", content="1").memory.etag
    at(PUBLIC).delete_memory(key="plan")

    assert refusal(at(PUBLIC).save_memory, key="plan", content="2", etag=etag) == "ABORTED ETAG_STALE"
    assert refusal(at(PUBLIC).save_memory, key="never", content="2", etag=etag) == "ABORTED ETAG_STALE"


def test_a_refused_save_changes_nothing(at):
    at(PUBLIC).save_memory(key="plan", content="1")
    before = at(PUBLIC).get_memory(key="plan")
    stale = at(PUBLIC).save_memory(key="other", content="1").memory.etag

    failure_of(at(PUBLIC).save_memory, key="plan", content="2", tags=["x"], etag=stale)

    assert at(PUBLIC).get_memory(key="plan") == before


def test_over_a_deleted_name_a_new_item_starts(at):
    first = at(PUBLIC).save_memory(key="plan", content="1").memory
    at(PUBLIC).delete_memory(key="plan")
    second = at(PUBLIC).save_memory(key="plan", content="1").memory

    assert second.create_time.ToDatetime() > first.create_time.ToDatetime()
    assert second.create_time == second.update_time
    assert second.etag[:21] != first.etag[:21]  # another item, not another revision


def test_c21_over_an_expired_name_a_new_item_starts(service, clock):
    session = service.session(PUBLIC)
    first = session.save_memory(key="plan", content="1", expire_time=in_future(hours=1)).memory
    clock.advance(hours=2)
    second = session.save_memory(key="plan", content="1").memory

    assert second.create_time == second.update_time
    assert second.create_time.ToDatetime() > first.expire_time.ToDatetime()
    assert second.etag[:21] != first.etag[:21]


def test_at_the_very_moment_at_which_it_expires_a_memory_is_gone(service, clock):
    """Get and save agree on it: what is not found is not continued."""
    session = service.session(PUBLIC)
    first = session.save_memory(key="plan", content="1", expire_time=in_future(hours=1)).memory
    clock.stop_at(first.expire_time.ToDatetime(tzinfo=UTC))

    assert refusal(session.get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
    second = session.save_memory(key="plan", content="2").memory
    assert second.create_time == second.update_time == first.expire_time
    assert second.etag[:21] != first.etag[:21]


def test_the_etag_of_an_expired_version_is_stale(service, clock):
    session = service.session(PUBLIC)
    expired = session.save_memory(key="plan", content="1", expire_time=in_future(hours=1)).memory
    clock.advance(hours=2)

    assert refusal(session.save_memory, key="plan", content="2", etag=expired.etag) == "ABORTED ETAG_STALE"


def test_under_an_expired_version_the_etag_of_the_lower_one_counts_again(service, clock):
    low, high = service.session(PUBLIC), service.session(RESTRICTED)
    lower = low.save_memory(key="plan", content="low").memory
    high.save_memory(key="plan", content="high", expire_time=in_future(hours=1))
    clock.advance(hours=2)

    assert high.save_memory(key="plan", content="new", etag=lower.etag).memory.classification == RESTRICTED


def test_a_memory_of_a_higher_level_has_its_own_create_time(at):
    """Only notes and blocks inherit that of a lower version."""
    low = at(PUBLIC).save_memory(key="plan", content="low").memory
    high = at(RESTRICTED).save_memory(key="plan", content="high").memory

    assert high.create_time.ToDatetime() > low.create_time.ToDatetime()


@pytest.mark.parametrize("seconds", [-86400 * 365, -1])
def test_an_expiry_in_the_past_is_refused(at, seconds):
    assert invalid(at(PUBLIC).save_memory, key="plan", content="text", expire_time=in_future(seconds=seconds)) == [
        "expire_time"
    ]


@pytest.mark.parametrize("seconds", [-(2**62), -62135596801, 253402300800, 2**62])
def test_an_expiry_outside_the_years_1_to_9999_is_refused(at, seconds):
    assert invalid(at(PUBLIC).save_memory, key="plan", content="text", expire_time={"seconds": seconds}) == [
        "expire_time"
    ]


@pytest.mark.parametrize("nanos", [-1, 1_000_000_000, 2**31 - 1])
def test_an_expiry_with_impossible_nanoseconds_is_refused(at, nanos):
    later = {"seconds": 4_000_000_000, "nanos": nanos}

    assert invalid(at(PUBLIC).save_memory, key="plan", content="text", expire_time=later) == ["expire_time"]


def test_an_expiry_is_kept_to_the_microsecond(at):
    later = {"seconds": 4_000_000_000, "nanos": 123_456_789}
    saved = at(PUBLIC).save_memory(key="plan", content="text", expire_time=later).memory

    assert (saved.expire_time.seconds, saved.expire_time.nanos) == (4_000_000_000, 123_456_000)


def test_content_is_kept_byte_for_byte(at):
    content = "e\u0301 é \r\n\t \u202e\ufeff\x01 நினைவு 👩\u200d💻 \U0010ffff"
    at(PUBLIC).save_memory(key="plan", content=content)

    assert at(PUBLIC).get_memory(key="plan").memory.content == content


@pytest.mark.parametrize("content", ["x", "x" * 131072, "€" * 43690])
def test_content_has_up_to_128_kib(at, content):
    assert at(PUBLIC).save_memory(key="plan", content=content).memory.content == content


@pytest.mark.parametrize("content", ["", "x" * 131073, "€" * 43691, "a\0b"])
def test_other_content_is_refused(at, content):
    assert invalid(at(PUBLIC).save_memory, key="plan", content=content) == ["content"]
