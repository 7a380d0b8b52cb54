"""Which parts of a snippet answer a query, for the eye. The server does not say; its words and grams tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from muniment_server.search.grams import grams, grams_of, word_pattern, words
from muniment_server.search.languages import small_words

_STYLE = "bold magenta"


def highlight(snippet: Text, query: str) -> None:
    """Mark what of *snippet* is like a word of *query*, small words left out."""
    small = small_words(query)
    asked = [frozenset(grams_of(word)) for spelled, word in words(query) if spelled not in small]
    for start, end in _matches(snippet.plain, asked):
        snippet.stylize(_STYLE, start, end)


def _matches(text: str, asked: list[frozenset[str]]) -> Iterator[tuple[int, int]]:
    for token in word_pattern().finditer(text):
        own = frozenset(grams(token[0]))
        if any("_" in gram for gram in own):  # of a script with spaces: the word as a whole
            if any(2 * len(own & word) > min(len(own), len(word)) for word in asked):
                yield token.span()
            continue
        for gram in own & frozenset[str]().union(*asked):
            for part in re.finditer(re.escape(gram), token[0]):
                yield token.start() + part.start(), token.start() + part.end()
