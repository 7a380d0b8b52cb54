"""Snippets: the part of a text that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muniment_server.search.grams import grams

SNIPPET_CHARS = 240
"""Code points of a snippet, at most."""

_TOKEN = re.compile(r"\S{1,24}\s*")
"""A word with the space after it; of scripts without spaces, a part."""


def snippet(text: str, weights: Mapping[str, float]) -> str:
    """The part of *text* with most of the grams of *weights*, each counted once; its beginning, if it has none."""
    tokens = [
        (match.start(), match.end(), frozenset(grams(match[0])) & weights.keys()) for match in _TOKEN.finditer(text)
    ]
    best, best_weight = text[:SNIPPET_CHARS], 0.0
    for first, (start, _, _) in enumerate(tokens):
        if first and not tokens[first][2]:
            continue
        end, found = start, set[str]()
        for _, token_end, own in tokens[first:]:
            if token_end - start > SNIPPET_CHARS:
                break
            if own:
                end, found = token_end, found | own
        weight = sum(weights[gram] for gram in sorted(found))
        if weight > best_weight:
            best, best_weight = _in_context(text, start, end), weight
    return best.strip()


def _in_context(text: str, start: int, end: int) -> str:
    """The part, and what stands before and after it, as far as it fits: whole words, where there are spaces."""
    room = SNIPPET_CHARS - (end - start)
    after = min(room - min(room // 2, start), len(text) - end)
    before = min(room - after, start)
    lead, rest = text[start - before : start], text[end : end + after]
    if before < start and " " in lead:
        lead = lead[lead.index(" ") + 1 :]
    if after < len(text) - end and " " in rest:
        rest = rest[: rest.rindex(" ")]
    return lead + text[start:end] + rest
