"""The contents of files: what is stored, and edits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from muniment._file_errors import AmbiguousText, InvalidContent, NoSuchLine, NoSuchText

MAX_BYTES = 128 * 1024
MAX_LISTED_LINES = 100
"""How many lines an error lists at most. A model may ask for a text that occurs 100,000 times."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def only_line_of(path: str, content: str, text: str) -> int:
    """The line in which the only occurrence of a text begins."""
    places = list(islice(_occurrences(content, text), MAX_LISTED_LINES))
    if not places:
        raise NoSuchText(f"The text does not occur in {path}. Nothing was changed.")
    lines = [content.count("\n", 0, place) + 1 for place in places]
    if content.count(text) > 1:
        raise AmbiguousText(f"The text occurs in {path} more than once: give more of its context.", lines)
    return lines[0]


def _occurrences(content: str, text: str) -> Iterator[int]:
    place = content.find(text) if text else -1
    while place != -1:
        yield place
        place = content.find(text, place + 1)


def with_lines(path: str, content: str, line: int, text: str) -> str:
    lines = content.split("\n")
    if not lines[-1]:
        lines.pop()
    if not 0 <= line <= len(lines):
        raise NoSuchLine(f"{path} has {len(lines)} lines. Nothing was inserted.", len(lines))
    lines.insert(line, text.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else f"{changed}\n"


def require_storable(path: str, content: str) -> None:
    """Check what the server would refuse. A lone surrogate cannot even be sent."""
    size = len(content.encode(errors="replace"))
    if size > MAX_BYTES:
        raise InvalidContent(f"{path} would have {size:,} bytes. A file has at most {MAX_BYTES:,}: split it.")
    if "\0" in content or _SURROGATE.search(content):
        raise InvalidContent(f"{path} would have a character that cannot be stored: U+0000, or half of a pair.")
