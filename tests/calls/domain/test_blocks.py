"""Edits of a block's text: which lines there are, where a text stands, how large the result may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment_server.domain.blocks import BLOCK_BYTES, Append, Insert, Replace, edited
from muniment_server.domain.errors import BlockTooLarge, LineOutOfRange, TextNotFound, TextNotUnique

TEXTS = st.text(st.sampled_from("ab\n\r\u2028é"), max_size=12)
LINES = st.text(st.sampled_from("ab\n\r\u2028é"), min_size=1, max_size=6)


def lines_of(text):
    """The lines of *text*, by the rule of the contract: they end at a line feed, and so may the last one."""
    return text.removesuffix("\n").split("\n") if text else []


@pytest.mark.parametrize(
    ("text", "content", "result"),
    [
        ("", "b", "b"), ("", "\n", "\n"), ("a", "b", "a\nb"), ("a\n", "b", "a\nb"), ("a", "b\n", "a\nb\n"),
        ("a\n", "\n", "a\n\n"), ("a\n\n", "b", "a\n\nb"), ("a\r", "b", "a\r\nb"), ("\n", "b", "\nb"),
        ("a", "b\nc", "a\nb\nc"),
    ],
)  # fmt: skip
def test_lines_are_appended_after_a_line_feed(text, content, result):
    assert edited(text, Append(content)) == result


@pytest.mark.parametrize(
    ("text", "line", "content", "result"),
    [
        ("", 0, "x", "x"), ("", 0, "x\n", "x\n"), ("a", 0, "x", "x\na"), ("a\n", 0, "x", "x\na\n"),
        ("a", 0, "x\n", "x\na"), ("a", 1, "x", "a\nx"), ("a\n", 1, "x", "a\nx"), ("a\nb", 1, "x", "a\nx\nb"),
        ("a\nb\n", 2, "x", "a\nb\nx"),
        ("a\nb", 2, "x\n", "a\nb\nx\n"), ("\n", 0, "x", "x\n\n"), ("\n", 1, "x", "\nx"), ("\n\n", 1, "x", "\nx\n\n"),
        ("é\nü", 1, "ö", "é\nö\nü"), ("a\r\nb", 1, "x", "a\r\nx\nb"),
        ("a\u2028b\x0bc\x85d", 1, "x", "a\u2028b\x0bc\x85d\nx"),
    ],
)  # fmt: skip
def test_lines_are_inserted_after_so_many_lines(text, line, content, result):
    """Line ends that people do not see as such are none."""
    assert edited(text, Insert(line, content)) == result


@pytest.mark.parametrize(
    ("text", "line"),
    [("", 1), ("a", 2), ("a\n", 2), ("\n", 2), ("a\nb", 3), ("a\u2028b", 2), ("a\rb", 2), ("a", 2**31 - 1)],
)
def test_an_insert_beyond_the_last_line_is_refused(text, line):
    with pytest.raises(LineOutOfRange):
        edited(text, Insert(line, "x"))


@given(TEXTS, LINES, st.data())
def test_an_insert_keeps_every_line_of_both(text, content, data):
    before = lines_of(text)
    line = data.draw(st.integers(0, len(before)))

    assert lines_of(edited(text, Insert(line, content))) == before[:line] + lines_of(content) + before[line:]


@given(TEXTS, LINES)
def test_an_append_is_an_insert_after_the_last_line(text, content):
    assert edited(text, Append(content)) == edited(text, Insert(len(lines_of(text)), content))


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("one two", "two", "2", "one 2"), ("one", "one", "", ""), ("a\nb", "\n", " ", "a b"), ("aab", "ab", "b", "ab"),
        ("é", "é", "e", "e"), ("a", "a", "aa", "aa"), ("நினைவு", "னை", "ன", "நினவு"),
    ],
)  # fmt: skip
def test_the_one_place_of_a_text_is_replaced(text, old, new, result):
    assert edited(text, Replace(old, new)) == result


@pytest.mark.parametrize(("text", "old"), [("", "a"), ("one", "One"), ("é", "e\u0301"), ("a b", "a  b"), ("a", "aa")])
def test_a_text_that_stands_nowhere_is_not_replaced(text, old):
    """Compared byte by byte: contents have no normal form."""
    with pytest.raises(TextNotFound):
        edited(text, Replace(old, "x"))


@pytest.mark.parametrize(
    ("text", "old"), [("a a", "a"), ("aaa", "aa"), ("abab", "ab"), ("ababa", "aba"), ("\n\n", "\n")]
)
def test_a_text_that_stands_in_several_places_is_not_replaced(text, old):
    """Also where the places overlap."""
    with pytest.raises(TextNotUnique):
        edited(text, Replace(old, "x"))


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
def test_a_block_is_filled_to_64_kib_of_utf8_and_not_beyond(character):
    size = len(character.encode())
    full = "x" * (BLOCK_BYTES - 2 * size - 1) + character

    for edit in (Append(character), Insert(1, character)):
        assert len(edited(full, edit).encode()) == BLOCK_BYTES
        with pytest.raises(BlockTooLarge):
            edited("x" + full, edit)


def test_the_line_feed_that_comes_between_counts():
    assert len(edited("x" * (BLOCK_BYTES - 2), Append("y"))) == BLOCK_BYTES
    with pytest.raises(BlockTooLarge):
        edited("x" * (BLOCK_BYTES - 1), Append("y"))


@pytest.mark.parametrize(("new", "fits"), [("x", True), ("xx", False), ("é", False), ("", True)])
def test_a_replacement_counts_what_it_takes_away(new, fits):
    full = "o" + "x" * (BLOCK_BYTES - 1)
    if fits:
        assert len(edited(full, Replace("o", new)).encode()) <= BLOCK_BYTES
    else:
        with pytest.raises(BlockTooLarge):
            edited(full, Replace("o", new))
