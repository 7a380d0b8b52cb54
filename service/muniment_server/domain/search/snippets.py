"""Snippets: the part of a text that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muniment_server.domain.search.grams import grams

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
            end, found = token_end, found | own
        weight = sum(weights[gram] for gram in sorted(found))
        if weight > best_weight:
            best, best_weight = _with_lead(text, start, end), weight
    return best.strip()


def _with_lead(text: str, start: int, end: int) -> str:
    """What stands before, as far as it fits, from the beginning of a word."""
    room = max(0, SNIPPET_CHARS - (end - start)) // 2
    lead = text[max(0, start - room) : start]
    if len(lead) < start and " " in lead:
        lead = lead[lead.index(" ") + 1 :]
    return lead + text[start:end]
