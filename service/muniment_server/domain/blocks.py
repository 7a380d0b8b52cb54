"""Edits of a block's text. A line ends at a line feed; the text after the last line feed is a line, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from muniment_server.domain.errors import BlockTooLarge, LineOutOfRange, TextNotFound, TextNotUnique

BLOCK_BYTES = 64 * 1024
"""The size limit of a block, in UTF-8."""


@dataclass(frozen=True, slots=True)
class Append:
    """Add lines at the end."""

    content: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert lines after the first *line* lines."""

    line: int
    content: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the only occurrence of *old* with *new*."""

    old: str
    new: str


BlockEdit: TypeAlias = Append | Insert | Replace


def edited(text: str, edit: BlockEdit) -> str:
    """*text* after *edit*. Raises LineOutOfRange, TextNotFound, TextNotUnique or BlockTooLarge."""
    result = _edited(text, edit)
    if len(result.encode()) > BLOCK_BYTES:
        raise BlockTooLarge
    return result


def _edited(text: str, edit: BlockEdit) -> str:
    match edit:
        case Append(content):
            return _inserted(text, len(_lines(text)), content)
        case Insert(line, content):
            return _inserted(text, line, content)
        case Replace(old, new):
            return _replaced(text, old, new)


def _lines(text: str) -> list[str]:
    """The lines, each with its line feed. (`str.splitlines` would split at more characters.)"""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _inserted(text: str, line: int, content: str) -> str:
    lines = _lines(text)
    if line > len(lines):
        raise LineOutOfRange
    before, after = "".join(lines[:line]), "".join(lines[line:])
    return _ended(before) + (_ended(content) if after else content) + after


def _ended(text: str) -> str:
    """*text* with a line feed at its end, unless it is empty or has one."""
    return text if not text or text.endswith("\n") else text + "\n"


def _replaced(text: str, old: str, new: str) -> str:
    start = text.find(old)
    if start < 0:
        raise TextNotFound
    if text.find(old, start + 1) >= 0:
        raise TextNotUnique
    return text[:start] + new + text[start + len(old) :]
