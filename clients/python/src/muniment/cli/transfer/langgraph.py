"""Reads the table `store` of LangGraph's PostgresStore in JSON Lines.

An item becomes the memory in which `muniment.langgraph.MunimentStore` keeps it, and so is found by that store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from muniment import Classification
from muniment._json import json_text
from muniment._langgraph_names import key_of, tags_of
from muniment.cli.transfer.fields import Fields, loaded, omitted
from muniment.cli.transfer.items import MemoryItem, Reading, checked
from muniment.cli.transfer.lines import numbered


def is_line(line: bytes) -> bool:
    """Whether a file that begins with *line* is of this format."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and {"prefix", "key", "value"} <= value.keys()


def read(source: bytes, level: Classification) -> Reading:
    """A memory for each item. Raises Unreadable."""
    rows = [Fields(where, loaded(where, line)) for where, line in numbered(source)]
    return Reading(checked(_memories(rows, level)), omitted(rows))


def _memories(rows: Iterable[Fields], level: Classification) -> Iterator[MemoryItem]:
    for fields in rows:
        namespace = tuple(fields.text("prefix").split("."))
        yield MemoryItem(
            fields.where,
            level,
            key=key_of(namespace, fields.text("key")),
            content=json_text(fields.json_object("value")),
            tags=tuple(tags_of(namespace)),
            expire_time=fields.time("expires_at"),
        )
