"""Names and tags as they arrive over the network: how they are kept, and which are refused."""

from __future__ import annotations

import pytest

from tests.support.answers import PUBLIC, RESTRICTED, invalid, keys, refusal

COMPOSED, DECOMPOSED = "க\u0bca", "க\u0bc6\u0bbe"


def test_two_spellings_of_one_key_are_one_memory(at):
    at(PUBLIC).save_memory(key=DECOMPOSED, content="text")

    assert at(PUBLIC).get_memory(key=COMPOSED).memory.key == COMPOSED
    assert at(PUBLIC).get_memory(key=DECOMPOSED).memory.key == COMPOSED
    at(PUBLIC).delete_memory(key=DECOMPOSED)
    assert keys(at(PUBLIC).list_memories()) == []


@pytest.mark.parametrize(
    "key", ["a" * 256, "\U0001f600" * 256, "நினைவு", "two words", "%_\\'\"", "a\u200db", DECOMPOSED * 128]
)
def test_a_key_has_up_to_256_code_points_of_any_script(at, key):
    at(PUBLIC).save_memory(key=key, content="text")

    assert at(PUBLIC).get_memory(key=key).memory.content == "text"


@pytest.mark.parametrize("rpc", ["save_memory", "get_memory", "delete_memory"])
@pytest.mark.parametrize("key", ["", " a", "a ", "a" * 257, "a" * 5000, "a\nb", "a\0b", "\u202ea", "\ufeffa"])
def test_another_key_is_refused_wherever_it_is_given(at, rpc, key):
    fields = {"content": "text"} if rpc == "save_memory" else {}

    assert invalid(getattr(at(PUBLIC), rpc), key=key, **fields) == ["key"]


def test_an_unassigned_character_is_refused_only_where_it_would_be_saved(at):
    assert invalid(at(PUBLIC).save_memory, key="\u0378", content="text") == ["key"]
    for rpc in (at(PUBLIC).get_memory, at(PUBLIC).delete_memory):
        assert refusal(rpc, key="\u0378") == "NOT_FOUND MEMORY_NOT_FOUND"


def test_keys_are_case_sensitive(at):
    at(PUBLIC).save_memory(key="Plan", content="text")

    assert refusal(at(PUBLIC).get_memory, key="plan") == "NOT_FOUND MEMORY_NOT_FOUND"


def test_tags_come_back_composed_trimmed_and_once_in_the_order_given(at):
    saved = at(PUBLIC).save_memory(key="k", content="x", tags=[" b", "a", "b ", DECOMPOSED, COMPOSED, "B"]).memory

    assert saved.tags == ["b", "a", COMPOSED, "B"]
    assert at(PUBLIC).get_memory(key="k").memory == saved


def test_32_tags_of_64_code_points_are_kept(at):
    tags = [f"{number:02}" + "\U0001f600" * 62 for number in range(32)]

    assert at(PUBLIC).save_memory(key="k", content="x", tags=tags).memory.tags == tags


@pytest.mark.parametrize(
    ("tags", "field"),
    [
        (["t"] * 33, "tags"), (["t" * 65], "tags[0]"), (["a", ""], "tags[1]"), (["a", " "], "tags[1]"),
        (["a\nb"], "tags[0]"), (["\u202e"], "tags[0]"), (["a\0"], "tags[0]"), (["x" * 5000], "tags[0]"),
    ],
)  # fmt: skip
def test_other_tags_are_refused_wherever_they_are_given(at, tags, field):
    assert invalid(at(PUBLIC).save_memory, key="k", content="x", tags=tags) == [field]
    assert invalid(at(PUBLIC).search_memories, query="x", tags=tags) == [field]


@pytest.mark.parametrize("tag", ["t" * 65, "a\nb", "\u202e", " ", "x" * 5000])
def test_another_tag_to_list_by_is_refused(at, tag):
    assert invalid(at(PUBLIC).list_memories, tag=tag) == ["tag"]


@pytest.mark.parametrize("etag", ["x", "*", 'W/"1"', "e" * 65, "நினைவு"])
def test_a_malformed_etag_is_refused(at, etag):
    assert invalid(at(RESTRICTED).save_memory, key="k", content="x", etag=etag) == ["etag"]
    assert invalid(at(RESTRICTED).delete_memory, key="k", etag=etag) == ["etag"]
