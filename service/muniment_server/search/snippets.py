"""Snippets: the part of a text that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muniment_server.search.grams import grams

SNIPPET_CHARS = 240
"""The size limit of a snippet, in code points."""

_TOKEN = re.compile(r"\S{1,24}\s*")
"""A word and the space after it, or part of a text without spaces."""


def snippet(text: str, weights: Mapping[str, float]) -> str:
    """The part of *text* with the heaviest grams, each counted once; its beginning if it contains none."""
    if len(text) <= SNIPPET_CHARS:
        return text.strip()
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
    """The part with as much context before and after it as fits, in whole words if there are spaces."""
    room = SNIPPET_CHARS - (end - start)
    after = min(room - min(room // 2, start), len(text) - end)
    before = min(room - after, start)
    lead, rest = text[start - before : start], text[end : end + after]
    if before < start and " " in lead:
        lead = lead[lead.index(" ") + 1 :]
    if after < len(text) - end and " " in rest:
        rest = rest[: rest.rindex(" ")]
    return lead + text[start:end] + rest
