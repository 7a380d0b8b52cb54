"""Chooses which words of a snippet to highlight. The server matches by other rules, and does not say what matched."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise

from rich.text import Text

_STYLE = "bold magenta"
_WORD = re.compile(r"[^\s!-/:-@\[-`{-~\u2010-\u205e\u3000-\u303f\uff00-\uff0f]+")
"""Everything between spaces and punctuation, in any script, so that marks stay with their letters."""
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
"""Han, kana and Hangul, where two characters count as a word."""
_MIN_PREFIX_CHARS = 4
"""`whale` is a prefix of `whales`. But `tea` is one of `team`, so shorter words are compared whole."""


def highlight(snippet: Text, query: str) -> None:
    """Mark the words of *snippet* that a word of *query* begins with, or that begin with one."""
    asked = {_folded(word) for word in _WORD.findall(query)}
    pairs = {pair for word in asked for pair in _pairs(word)}
    for start, end in {*_alike(snippet.plain, asked), *_containing(snippet.plain, pairs)}:
        snippet.stylize(_STYLE, start, end)


def _alike(text: str, asked: Iterable[str]) -> Iterator[tuple[int, int]]:
    for word in _WORD.finditer(text):
        if any(_begin_alike(_folded(word[0]), each) for each in asked):
            yield word.span()


def _containing(text: str, pairs: Iterable[str]) -> Iterator[tuple[int, int]]:
    for pair in pairs:
        yield from (found.span() for found in re.finditer(re.escape(pair), text))


def _begin_alike(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    return word == other or (len(shorter) >= _MIN_PREFIX_CHARS and longer.startswith(shorter))


def _pairs(word: str) -> Iterator[str]:
    for run in _IDEOGRAPHS.findall(word):
        yield from (first + second for first, second in pairwise(run))


def _folded(word: str) -> str:
    """*word* without case and accents."""
    letters = unicodedata.normalize("NFKD", word.casefold())
    kept = (letter for letter in letters if ord(letter) >= 0x370 or unicodedata.category(letter) != "Mn")
    return unicodedata.normalize("NFC", "".join(kept))
