"""The filter by key prefix, in lists and searches."""

from __future__ import annotations

import pytest

from tests.support.answers import INTERNAL, PUBLIC, UP, invalid, keys, pages, refusal


def save(session, *key_names, **fields):
    """Save memories by key."""
    session.save_memories(memories=[{"key": key, "content": f"harbor {key}", **fields} for key in key_names])


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", ["a", "a b", "ab", "a\u00e9", "b"]),
        ("a", ["a", "a b", "ab", "a\u00e9"]),
        ("a ", ["a b"]),
        ("ab", ["ab"]),
        ("ae\u0301", ["a\u00e9"]),
        ("ae", []),
        ("B", []),
        ("%", []),
    ],
)
def test_keys_begin_with_it_byte_by_byte(at, prefix, expected):
    save(at(PUBLIC), "b", "ab", "a b", "a\u00e9", "a")

    assert keys(at(PUBLIC).list_memories(key_prefix=prefix)) == expected
    assert sorted(keys(at(PUBLIC).search_memories(query="harbor", key_prefix=prefix))) == sorted(expected)


@pytest.mark.parametrize("last", ["z", "\ud7fb", "\uffee", "\U0001f600"])
def test_the_last_character_may_be_any(at, last):
    save(at(PUBLIC), "k", f"k{last}", f"k{last}x", "k\U0001f601")

    assert keys(at(PUBLIC).list_memories(key_prefix=f"k{last}")) == [f"k{last}", f"k{last}x"]


@pytest.mark.parametrize(("low", "high"), UP)
def test_each_at_its_highest_visible_level(at, low, high):
    save(at(low), "a/1", "a/2", "b/1")
    save(at(high), "a/1")

    listed = at(high).list_memories(key_prefix="a/").memories

    assert [(one.key, one.classification) for one in listed] == [("a/1", high), ("a/2", low)]
    assert keys(at(low).list_memories(key_prefix="a/")) == ["a/1", "a/2"]


def test_it_combines_with_tags(at):
    save(at(PUBLIC), "a/1", "b/1", tags=["x"])
    save(at(PUBLIC), "a/2", tags=["y"])

    assert keys(at(PUBLIC).list_memories(key_prefix="a/", tag="x")) == ["a/1"]
    assert keys(at(PUBLIC).search_memories(query="harbor", key_prefix="a/", tags=["x"])) == ["a/1"]


def test_pages_belong_to_their_prefix(at):
    save(at(PUBLIC), "a1", "a2", "a3", "b1")

    found = pages(at(PUBLIC).list_memories, key_prefix="a", page_size=2)
    token = found[0].next_page_token

    assert [keys(page) for page in found] == [["a1", "a2"], ["a3"]]
    assert keys(at(PUBLIC).list_memories(key_prefix="a", page_token=token)) == ["a3"]
    for other in ({}, {"key_prefix": "b"}, {"tag": "a"}):
        assert refusal(at(PUBLIC).list_memories, page_token=token, **other) == "INVALID_ARGUMENT PAGE_TOKEN_INVALID"


@pytest.mark.parametrize("prefix", [" a", "a\n", "\u200e", "x" * 257])
def test_it_obeys_the_rules_of_a_key(at, prefix):
    assert invalid(at(INTERNAL).list_memories, key_prefix=prefix) == ["key_prefix"]
    assert invalid(at(INTERNAL).search_memories, query="q", key_prefix=prefix) == ["key_prefix"]


def test_the_longest_key_is_found_by_itself(at):
    save(at(PUBLIC), "x" * 256)

    assert keys(at(PUBLIC).list_memories(key_prefix="x" * 256)) == ["x" * 256]
