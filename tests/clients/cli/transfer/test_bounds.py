"""An import reads no more than a bound of a file, of a line, and of what has no end."""

from __future__ import annotations

import io
import json
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pytest

from muniment import Classification
from muniment.cli.transfer import formats, lines, markdown
from muniment.cli.transfer.items import Unreadable

MEMORY = {"kind": "memory", "level": "internal", "key": "plan", "content": "ship"}


class Endless(io.RawIOBase):
    """A pipe whose writer repeats itself forever, and counts what was read."""

    def __init__(self, begin: bytes, repeated: bytes) -> None:
        self._left, self._next = begin, cycle([repeated * (65536 // len(repeated) + 1)])
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        self._left = self._left or next(self._next)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        self.count += size
        return size


def refused(path, **options) -> str:
    with pytest.raises(Unreadable) as caught:
        formats.read(formats.Source(Path(path), "bob", **options))
    return caught.value.message


def piped(monkeypatch, begin: bytes, repeated: bytes) -> Endless:
    endless = Endless(begin, repeated)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(endless)))
    return endless


@pytest.mark.parametrize("given", [None, "letta", "mem0", "mcp"])
def test_a_device_without_an_end_is_read_up_to_the_size_of_a_document(monkeypatch, given):
    monkeypatch.setattr(formats, "_MAX_DOCUMENT_BYTES", 8 * 1024**2)

    assert refused("/dev/zero", format=given, level=Classification.PUBLIC) == "the file is larger than 8 MiB"


@pytest.mark.parametrize("given", ["muniment", "langgraph"])
def test_a_first_line_without_an_end_is_read_up_to_the_size_of_a_line(monkeypatch, given):
    endless = piped(monkeypatch, b"", b"0")

    assert refused("-", format=given, level=Classification.PUBLIC) == "line 1: is longer than 4 MiB"
    assert endless.count < 2 * lines.MAX_LINE_BYTES


@pytest.mark.parametrize("begin", [{"format": "muniment", "version": 2}, {"type": "entity", "name": "Ada"}])
def test_lines_without_an_end_are_read_up_to_the_size_of_a_file(monkeypatch, begin):
    monkeypatch.setattr(formats, "_MAX_BYTES", 8 * 1024**2)
    endless = piped(monkeypatch, json.dumps(begin).encode() + b"\n", json.dumps(MEMORY).encode() + b"\n")

    assert refused("-") == "the file is larger than 8 MiB"
    assert endless.count < 9 * 1024**2


def test_a_later_line_has_the_same_limit(tmp_path):
    header = {"format": "muniment", "version": 2}
    (tmp_path / "given").write_text(f"{json.dumps(header)}\n{' ' * (lines.MAX_LINE_BYTES + 1)}\n")

    assert refused(tmp_path / "given", edited=True) == "line 2: is longer than 4 MiB"


def test_an_item_of_the_largest_size_fits_into_a_line(tmp_path):
    passage = {"kind": "passage", "level": "internal", "passage_id": "p", "content": "\x01" * 256 * 1024}
    (tmp_path / "given").write_text(f"{json.dumps({'format': 'muniment', 'version': 2})}\n{json.dumps(passage)}\n")

    reading = formats.read(formats.Source(tmp_path / "given", "bob", edited=True))

    assert len(reading.items) == 1


def test_a_markdown_file_has_a_limit(tmp_path):
    (tmp_path / "note.md").write_bytes(b"x" * (1024**2 + 1))

    with pytest.raises(Unreadable, match="is larger than 1 MiB"):
        markdown.read(tmp_path, Classification.PUBLIC)
