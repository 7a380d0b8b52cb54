"""Reads the export of OpenMemory: a ZIP file whose `memories.jsonl.gz` has a memory on each line.

An active memory becomes a passage; its categories are its tags, and the app that stored it is its author. Memories that
are paused, archived or deleted are skipped, and other fields are omitted. The file is not trusted: what is unpacked has
a size limit.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from muniment import Classification
from muniment.cli.transfer.fields import Fields, loaded, omitted
from muniment.cli.transfer.items import PassageItem, Reading, Unreadable, derived_id, foreign, oldest_first
from muniment.cli.transfer.lines import numbered

MAGIC = b"PK\x03\x04"
_MEMBER = "memories.jsonl.gz"
_MAX_BYTES = 256 * 1024**2
"""The size limit of what is unpacked."""
_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError)
"""What reading a ZIP file raises: OSError for an offset before the beginning, ValueError for an undecodable name, the
last two for compression and encryption that Python lacks."""


def read(file: Path, level: Classification, *, agent_id: str) -> Reading:
    """A passage for each active memory. Raises Unreadable."""
    memories = [Fields(where, loaded(where, line)) for where, line in numbered(_unpacked(file))]
    active = [each for each in memories if each.text("state", default="active") == "active"]
    skipped = len(memories) - len(active)
    remarks = (f"omitted memories that are paused, archived or deleted: {skipped}",) if skipped else ()
    return Reading(foreign(_passages(active, level, agent_id)), (*omitted(active), *remarks))


def _unpacked(file: Path) -> bytes:
    try:
        with zipfile.ZipFile(file) as opened:
            member = next((name for name in opened.namelist() if name.rpartition("/")[2] == _MEMBER), None)
            if member is None:
                raise Unreadable("", f"is not an export of OpenMemory: the ZIP file has no {_MEMBER}")
            with opened.open(member) as packed, gzip.open(packed) as unpacked:
                content = unpacked.read(_MAX_BYTES + 1)
    except _BROKEN:
        raise Unreadable(
            "", "the ZIP file is damaged, or uses compression or encryption that is not supported"
        ) from None
    if len(content) > _MAX_BYTES:
        raise Unreadable("", f"{_MEMBER} unpacks to more than {_MAX_BYTES // 1024**2} MiB")
    return content


def _passages(memories: list[Fields], level: Classification, agent_id: str) -> Iterator[PassageItem]:
    return oldest_first(_passage(memory, level, agent_id) for memory in memories)


def _passage(memory: Fields, level: Classification, agent_id: str) -> PassageItem:
    return PassageItem(
        memory.where,
        level,
        passage_id=derived_id(agent_id, "openmemory", memory.text("id")),
        content=memory.text("content"),
        tags=memory.texts("categories"),
        author=memory.text("app", default="") or None,
        event_time=memory.time("created_at", zone=False),
    )
