"""Long texts in pieces: each is indexed and ranked by itself, and the best one stands for its item."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

PIECE_CHARS = 600
"""Code points of a piece, at most."""

_BREAK = re.compile(r"[.!?…।॥؟][\"'”’»)\]]*\s+|[。！？]|\n+")
"""Where a sentence or a line ends. One sign at a time: a long run of dots is looked through once."""


class Piece(NamedTuple):
    """A part of a text: from code point *start*, *size* code points."""

    start: int
    size: int

    def of(self, text: str) -> str:
        """The part itself."""
        return text[self.start : self.start + self.size]


def pieces(text: str) -> list[Piece]:
    """*text* in parts that lose nothing: whole sentences as long as they fit, longer ones cut hard."""
    parts: list[Piece] = []
    for start, end in _sentences(text):
        if parts and end - parts[-1].start <= PIECE_CHARS:
            parts[-1] = Piece(parts[-1].start, end - parts[-1].start)
        else:
            parts.append(Piece(start, end - start))
    return parts


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences and lines begin and end, none longer than a piece."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    for begin, end in pairwise(dict.fromkeys([0, *ends, len(text)])):
        for start in range(begin, end, PIECE_CHARS):
            yield start, min(start + PIECE_CHARS, end)
