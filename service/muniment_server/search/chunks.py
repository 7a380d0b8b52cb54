"""Splits long texts into chunks. Each is indexed and ranked on its own; the best one represents its item."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

CHUNK_CHARS = 600
"""The size limit of a chunk, in code points."""

_BREAK = re.compile(r"[.!?…।॥؟][\"'”’»)\]]*\s+|[。！？]|\n+")
"""The end of a sentence or a line. Matches one mark at a time, so that a long run of dots is scanned only once."""


class Chunk(NamedTuple):
    """A part of a text: *size* code points from code point *start*."""

    start: int
    size: int

    def of(self, text: str) -> str:
        """The text of the chunk."""
        return text[self.start : self.start + self.size]


def chunks(text: str) -> list[Chunk]:
    """Split *text*, without omitting anything, after whole sentences. Sentences longer than a chunk are cut."""
    parts: list[Chunk] = []
    for start, end in _sentences(text):
        if parts and end - parts[-1].start <= CHUNK_CHARS:
            parts[-1] = Chunk(parts[-1].start, end - parts[-1].start)
        else:
            parts.append(Chunk(start, end - start))
    return parts


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each sentence or line, none longer than a chunk."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    for begin, end in pairwise(dict.fromkeys([0, *ends, len(text)])):
        for start in range(begin, end, CHUNK_CHARS):
            yield start, min(start + CHUNK_CHARS, end)
