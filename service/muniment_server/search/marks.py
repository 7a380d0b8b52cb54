"""Marks: terms of the index that are not words. They say who wrote a passage, and whether it asks something.

Like the scope, they begin with `@`, as no word does.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from muniment_server.search.grams import folded_words

_QUESTION = "@?"
"""The mark of a text that asks. `lexical.sql` and `semantic.sql` have it, too."""
_ASKS = re.compile(r"\?(?!\w)|[？؟՞]")
"""A question mark, but not the one in an address."""
_MAX_CHARS = 100
"""How much of such a word counts: Postgres refuses terms of more than 2 kB."""
_MAX_NAMES = 8
"""How many words of an author's name are marks: the first ones."""


def marks(author: str | None, text: str, words: Collection[str]) -> list[str]:
    """The marks of a chunk of a passage with these folded *words*.

    A text that names its author gets no mark for that: its words say so, and with both, searches find fewer facts about
    authors.
    """
    names = folded_words(author)[:_MAX_NAMES] if author else []
    found = dict.fromkeys(author_mark(name) for name in names if name not in words)
    return [*found, *([_QUESTION] if _ASKS.search(text) else [])]


def author_mark(name: str) -> str:
    """The mark of the passages by an author one word of whose name is *name*, folded as for grams."""
    return f"@{name[:_MAX_CHARS]}"
