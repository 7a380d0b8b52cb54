"""The keys and tags of the memories in which items are stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment._langgraph_names import key_of, namespace_of, tags_of, unescaped
from muniment_server.domain import text

TEXTS = st.text(max_size=20) | st.text(
    st.sampled_from("%./ aA0e\u0301\u0338é\u1100\u1161\0\ud800\ufeff\u2028"), max_size=8
)
PATHS = st.lists(TEXTS.filter(bool), max_size=4).map(tuple)


@settings(max_examples=500, deadline=None)
@given(PATHS, TEXTS)
def test_every_namespace_and_key_comes_back_from_the_key_of_its_memory(namespace: tuple[str, ...], key: str):
    """So no two have the same."""
    prefix, path, escaped = key_of(namespace, key).split("/")

    assert (prefix, namespace_of(path), unescaped(escaped)) == ("muniment:langgraph", namespace, key)


@settings(max_examples=500, deadline=None)
@given(PATHS, TEXTS)
def test_the_server_keeps_keys_and_tags_as_they_are(namespace: tuple[str, ...], key: str):
    made = key_of(namespace, key)
    if len(made) <= text.KEY_LIMIT:
        assert text.key(made) == made
    tags = tags_of(namespace)
    assert text.tags(tags) == tags


def test_a_key_is_the_same_whatever_unicode_the_interpreter_knows():
    assert key_of(("é", "記憶"), "நினைவு") == "muniment:langgraph/é.記憶/நினைவு"
    assert key_of(("a",), "\U0001fae0") == "muniment:langgraph/a/%F0%9F%AB%A0"  # since Unicode 14


@pytest.mark.parametrize("depth", [1, 31, 32, 60])
def test_there_are_never_too_many_tags(depth):
    tags: list[Any] = tags_of(("x" * 100,) * depth)

    assert len(tags) == min(depth, 31) + 1
