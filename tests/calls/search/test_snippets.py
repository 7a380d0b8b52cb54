"""The part of a text that is shown."""

from __future__ import annotations

import pytest

from muniment_server.search.grams import grams
from muniment_server.search.snippets import SNIPPET_CHARS, snippet

FILLER = "The meeting went on and on. " * 20
SECRET = "The new password of the vault is marmalade, says Ann. "


def shown(text, query):
    return snippet(text, dict.fromkeys(grams(query), 1.0))


@pytest.mark.parametrize("text", [FILLER + SECRET + FILLER, SECRET + FILLER, FILLER + SECRET])
def test_the_context_before_and_after_is_shown_too(text):
    part = shown(text, "marmalade")

    assert SECRET.strip() in part
    assert part in text
    assert SNIPPET_CHARS - 30 < len(part) <= SNIPPET_CHARS


def test_words_are_whole():
    part = shown(FILLER + SECRET + FILLER, "marmalade")

    assert set(part.split()) <= set((FILLER + SECRET).split())


def test_a_text_that_fits_is_shown_whole():
    assert shown(SECRET, "marmalade") == SECRET.strip()


def test_most_of_the_query_is_shown():
    text = f"a password. {FILLER}{SECRET}{FILLER}"

    assert "vault is marmalade" in shown(text, "password vault marmalade")


def test_without_a_match_the_beginning_is_shown():
    assert shown(SECRET + FILLER, "zebra") == (SECRET + FILLER)[:SNIPPET_CHARS].strip()


def test_a_script_without_spaces_is_cut_anywhere():
    text = "会議は続いた" * 60 + "金庫の合言葉" + "会議は続いた" * 60

    part = shown(text, "金庫の合言葉")

    assert "続いた金庫の合言葉会議" in part
    assert len(part) == SNIPPET_CHARS
