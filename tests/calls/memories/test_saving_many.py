"""SaveMemories."""

from __future__ import annotations

import pytest
from google.rpc import error_details_pb2

from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    PUBLIC,
    RESTRICTED,
    UP,
    detail,
    events,
    fields_of,
    in_future,
    invalid,
    keys,
    refusal,
)
from tests.support.services import failure_of


def test_all_are_saved_at_the_taint_in_the_order_of_the_request(at):
    given = [{"key": key, "content": f"about {key}", "tags": [key, "all"]} for key in ("b", "a", "c")]

    saved = at(INTERNAL).save_memories(memories=given).memories

    assert [(one.key, one.content, list(one.tags), one.classification) for one in saved] == [
        (one["key"], one["content"], one["tags"], INTERNAL) for one in given
    ]
    assert list(saved) == [at(INTERNAL).get_memory(key=one["key"]).memory for one in given]


def test_each_is_saved_as_by_itself(at):
    """A new one, a replaced one, and one that changes nothing."""
    old = at(PUBLIC).save_memory(key="old", content="old").memory
    same = at(PUBLIC).save_memory(key="same", content="same", tags=["t"]).memory

    saved = (
        at(PUBLIC)
        .save_memories(
            memories=[
                {"key": "same", "content": "same", "tags": ["t"]},
                {"key": "old", "content": "new", "etag": old.etag, "expire_time": in_future(days=1)},
                {"key": "new", "content": "new"},
            ]
        )
        .memories
    )

    assert saved[0] == same
    assert saved[1].create_time == old.create_time
    assert saved[1].etag != old.etag
    assert saved[1].HasField("expire_time")


def test_together_they_have_at_most_128_kib_of_content(at):
    """More would be indexed for seconds, while a raise waits."""
    full = [{"key": f"k{number}", "content": "é" * 32_768} for number in range(2)]
    assert len(at(PUBLIC).save_memories(memories=full).memories) == 2

    refused = invalid(at(PUBLIC).save_memories, memories=[*full, {"key": "k2", "content": "x"}])

    assert refused == ["memories"]

    assert keys(at(PUBLIC).list_memories()) == ["k0", "k1"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_versions_at_other_levels_stay(at, low, high):
    at(low).save_memories(memories=[{"key": "plan", "content": "low"}])
    at(high).save_memories(memories=[{"key": "plan", "content": "high"}])

    assert at(low).get_memory(key="plan").memory.content == "low"
    assert at(high).get_memory(key="plan").memory.content == "high"


def test_what_is_saved_is_found_by_its_words(at):
    at(PUBLIC).save_memories(memories=[{"key": f"k{n}", "content": f"the harbor number {n}"} for n in range(5)])

    assert sorted(keys(at(PUBLIC).search_memories(query="harbor"))) == [f"k{n}" for n in range(5)]


def test_a_refused_one_leaves_all_unsaved_and_is_named(at, host):
    stale = at(PUBLIC).save_memory(key="b", content="first").memory.etag
    at(PUBLIC).save_memory(key="b", content="second")
    before = len(events(host))

    outcome = failure_of(
        at(PUBLIC).save_memories,
        memories=[
            {"key": "a", "content": "a"},
            {"key": "z", "content": "z", "etag": stale},
            {"key": "b", "content": "third", "etag": stale},
        ],
    )

    assert (outcome.code.name, fields_of(outcome)) == ("ABORTED", ["memories[1].etag", "memories[2].etag"])
    assert detail(outcome, error_details_pb2.ErrorInfo).reason == "ETAG_STALE"
    assert keys(at(PUBLIC).list_memories()) == ["b"]
    assert at(PUBLIC).get_memory(key="b").memory.content == "second"
    assert [(event.method, event.outcome) for event in events(host)[before:]] == [("SaveMemories", "ETAG_STALE")]


def test_one_that_expires_in_the_past_is_named(at):
    given = [{"key": "a", "content": "a"}, {"key": "b", "content": "b", "expire_time": {"seconds": 1}}]

    assert invalid(at(PUBLIC).save_memories, memories=given) == ["memories[1].expire_time"]
    assert keys(at(PUBLIC).list_memories()) == []


def test_the_first_refused_one_decides_the_error(at):
    stale = at(PUBLIC).save_memory(key="b", content="b").memory.etag
    at(PUBLIC).save_memory(key="b", content="c")
    past = {"key": "a", "content": "a", "expire_time": {"seconds": 1}}
    old = {"key": "b", "content": "b", "etag": stale}

    assert refusal(at(PUBLIC).save_memories, memories=[past, old]) == "INVALID_ARGUMENT FIELD_INVALID"
    assert refusal(at(PUBLIC).save_memories, memories=[old, past]) == "ABORTED ETAG_STALE"


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ([], ["memories"]),
        ([{"key": "k", "content": "c"}] * 101, ["memories"]),
        ([{"key": "a", "content": "c"}, {"key": "", "content": "c"}], ["memories[1].key"]),
        ([{"key": "a", "content": "c"}, {"key": "b ", "content": "c"}], ["memories[1].key"]),
        ([{"key": "a", "content": "c\0"}], ["memories[0].content"]),
        ([{"key": "a", "content": "c", "tags": ["t", "\n\n"]}], ["memories[0].tags[1]"]),
        ([{"key": "a", "content": "c", "etag": "x"}], ["memories[0].etag"]),
        ([{"key": "a", "content": "c", "expire_time": {"nanos": -1}}], ["memories[0].expire_time"]),
        (
            [{"key": key, "content": "c"} for key in ("a", "\u00e9", "b", "e\u0301", "a")],
            ["memories[3].key", "memories[4].key"],
        ),
    ],
)
def test_what_breaks_a_rule_is_named_by_its_index(at, given, fields):
    assert invalid(at(PUBLIC).save_memories, memories=given) == fields


def test_one_audit_row_for_each_that_changes_something(at, host):
    at(CONFIDENTIAL).save_memory(key="same", content="same")
    before = len(events(host))

    saved = at(CONFIDENTIAL).save_memories(
        memories=[{"key": "b", "content": "b"}, {"key": "same", "content": "same"}, {"key": "a", "content": "a"}]
    )

    written = [event for event in events(host)[before:] if event.method == "SaveMemories"]
    assert len(saved.memories) == 3
    assert {(event.outcome, event.classification, event.revision) for event in written} == {("OK", CONFIDENTIAL, 1)}
    assert len({event.item_id for event in written}) == 2


def test_a_high_batch_is_as_absent_below(at):
    at(RESTRICTED).save_memories(memories=[{"key": "plan", "content": "secret"}])

    assert refusal(at(CONFIDENTIAL).get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"
