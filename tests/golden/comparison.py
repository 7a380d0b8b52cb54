"""Holds a transcript against the committed one, but for the texts of errors that are known to have changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.golden.rendering import TEXTS
from tests.golden.stage import ENTRY

FOLDER = Path(__file__).with_name("transcripts")
CHANGED = Path(__file__).with_name("changed_texts.txt")
_ARROW = " -> "

Changes = set[tuple[str, str]]


def committed(scene: str) -> str:
    """The transcript of a scene as it was taken."""
    path = FOLDER / f"{scene}.txt"
    return path.read_bytes().decode() if path.exists() else ""


def changed_texts() -> Changes:
    """The texts of errors that have changed, as (old, new). One old text may have become several new ones."""
    found = set()
    for line in CHANGED.read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            old, arrow, new = line.partition(_ARROW)
            assert arrow, f"{CHANGED.name}: not of the form `old{_ARROW}new`: {line}"
            found.add((old, new))
    return found


def differences(scene: str, actual: str, changes: Changes, used: Changes) -> str:
    """A diff, empty if there is no difference. The changes that it met are added to *used*."""
    now = [*_entries(actual)]
    before = [*_entries(committed(scene))]
    expected = [
        line
        for number, entry in enumerate(before)
        for line in _with_new_texts(entry, now[number] if number < len(now) else [], changes, used)
    ]
    return "\n".join(
        difflib.unified_diff(expected, [line for entry in now for line in entry], "committed", "now", lineterm="")
    )


def _entries(transcript: str) -> Iterator[list[str]]:
    entry: list[str] = []
    for line in transcript.split("\n"):
        if line.startswith(ENTRY) and entry:
            yield entry
            entry = []
        entry.append(line)
    yield entry


def _with_new_texts(before: Iterable[str], now: list[str], changes: Changes, used: Changes) -> Iterator[str]:
    for number, line in enumerate(before):
        other = now[number] if number < len(now) else ""
        prefix = next((prefix for prefix in TEXTS if line.startswith(prefix) and other.startswith(prefix)), None)
        change = (line.removeprefix(prefix), other.removeprefix(prefix)) if prefix else None
        if change in changes:
            used.add(change)
            yield other
        else:
            yield line
