"""The format of `muniment export`: JSON Lines in UTF-8, a header and then one item per line.

```
{"format": "muniment", "version": 2, "agent_id": "alice", "item_count": 2, "sha256": "9f86…"}
{"kind": "memory", "level": "internal", "key": "plan", "content": "ship on Friday", "tags": ["work"]}
{"kind": "note", "level": "public", "tier": "memory", "note_id": "5f0c…", "content": "likes tea"}
```

A header with `"integrity": "trusted"` says that trusted sessions wrote all items. Empty fields are omitted. The count
shows whether a file was truncated, and the hash whether an item or the integrity was edited: an item that comes back at
a lower level is a leak. The hash is no signature: whoever edits a file with intent can compute it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muniment import Classification, Integrity, Tier
from muniment.cli.transfer.fields import Fields, loaded
from muniment.cli.transfer.items import (
    BlockItem,
    Item,
    MemoryItem,
    NoteItem,
    PassageItem,
    Reading,
    Unreadable,
    checked,
)

FORMAT = "muniment"
MAX_LINE_BYTES = 4 * 1024**2
"""The size limit of one line: room for the largest item, each byte of which may be escaped as six."""
_VERSION = 2
_VERSION_WITHOUT_HASH = 1


def written(
    agent_id: str, items: Sequence[Item], integrity: Integrity = Integrity.UNTRUSTED, *, ascii_only: bool = False
) -> Iterator[str]:
    """The lines for *items*, in order."""
    objects = [_object(item) for item in items]
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": _VERSION,
        "agent_id": agent_id,
        "item_count": len(items),
        "sha256": _hash(objects, integrity),
    }
    if integrity is Integrity.TRUSTED:
        header["integrity"] = "trusted"
    for value in (header, *objects):
        yield json.dumps(value, ensure_ascii=ascii_only) + "\n"


def _hash(objects: Iterable[object], integrity: Integrity) -> str:
    """The hash of what they say, however it is written. Files without an integrity have that of their items alone."""
    made = hashlib.sha256()
    header = [{"integrity": "trusted"}] if integrity is Integrity.TRUSTED else []
    for each in (*header, *objects):
        made.update(json.dumps(each, sort_keys=True).encode() + b"\n")
    return made.hexdigest()


def _object(item: Item) -> dict[str, Any]:
    own = {name: value for name, value in _own_fields(item).items() if value not in (None, [])}
    return {"kind": item.kind, "level": item.level.name.lower()} | own


def _own_fields(item: Item) -> dict[str, Any]:
    match item:
        case MemoryItem():
            return {
                "key": item.key,
                "content": item.content,
                "tags": list(item.tags),
                "expire_time": _time(item.expire_time),
            }
        case NoteItem():
            return {"tier": item.tier.name.lower(), "note_id": item.note_id, "content": item.content}
        case BlockItem():
            return {"label": item.label, "content": item.content}
        case PassageItem():
            return {
                "passage_id": item.passage_id,
                "content": item.content,
                "tags": list(item.tags),
                "thread": item.thread,
                "author": item.author,
                "event_time": _time(item.event_time),
                "expire_time": _time(item.expire_time),
            }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def is_header(line: bytes) -> bool:
    """Whether a file that begins with *line* is an export."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("format") == FORMAT


def numbered(source: bytes, *, bounded: bool = True) -> Iterator[tuple[str, bytes]]:
    """The lines that are not blank, with their numbers. Only a line feed ends a line.

    Raises Unreadable for a line that is too long, if they are *bounded*.
    """
    for number, line in enumerate(source.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if bounded:
            require_bounded(f"line {number}", line)
        if line.strip():
            yield f"line {number}", line


def first_line(source: bytes) -> bytes:
    """The first line that is not blank."""
    return next((line for _, line in numbered(source, bounded=False)), b"")


def require_bounded(where: str, line: bytes) -> None:
    """Raise Unreadable for a line that no item needs."""
    if len(line) > MAX_LINE_BYTES:
        raise Unreadable(where, f"is longer than {MAX_LINE_BYTES // 1024**2} MiB")


def read(source: bytes, *, edited: bool = False) -> Reading:
    """The items of an export, at their levels. Raises Unreadable, also if one was edited and *edited* is False."""
    lines = numbered(source)
    header = _header(lines)
    objects = [(where, loaded(where, line)) for where, line in lines]
    items = checked(_item(Fields(where, value)) for where, value in objects)
    if edited:
        return Reading(items)  # whoever has checked it says what it is
    if header.count not in (None, len(items)):
        raise Unreadable(
            "",
            f"the header promises {header.count:,} items, and there are {len(items):,}",
            "the file is incomplete: export again",
        )
    if not header.hash:
        raise Unreadable("", "no hash shows that its items were not edited", "if you wrote it, give --edited")
    if header.hash != _hash((value for _, value in objects), header.integrity):
        raise Unreadable("", "it was edited", "check its integrity and the level of each item, then give --edited")
    return Reading(items, integrity=header.integrity)


@dataclass(frozen=True, slots=True)
class _Header:
    count: int | None
    hash: str
    integrity: Integrity


def _header(lines: Iterator[tuple[str, bytes]]) -> _Header:
    where, line = next(lines, ("line 1", b""))
    header = Fields(where, loaded(where, line))
    if header.text("format", default="") != FORMAT:
        raise Unreadable(where, f'is not the header of an export: {{"format": "{FORMAT}", "version": {_VERSION}}}')
    if header.whole("version") not in (_VERSION_WITHOUT_HASH, _VERSION):
        raise Unreadable(where, f"version must be {_VERSION}", "a newer `muniment` wrote it: upgrade this one")
    found = _Header(header.whole("item_count"), header.text("sha256", default=""), _integrity(header))
    header.text("agent_id", default="")
    header.refuse_others()
    return found


def _item(fields: Fields) -> Item:
    kind = fields.text("kind")
    if kind not in _READERS:
        raise Unreadable(fields.where, f"kind must be one of {', '.join(_READERS)}")
    item = _READERS[kind](fields, _level(fields))
    fields.refuse_others()
    return item


def _level(fields: Fields) -> Classification:
    try:
        return Classification[fields.text("level").upper()]
    except KeyError:
        raise Unreadable(fields.where, "level must be public, internal, confidential or restricted") from None


def _integrity(header: Fields) -> Integrity:
    try:
        return Integrity[header.text("integrity", default="untrusted").upper()]
    except KeyError:
        raise Unreadable(header.where, "integrity must be trusted or untrusted") from None


def _tier(fields: Fields) -> Tier:
    try:
        return Tier[fields.text("tier").upper()]
    except KeyError:
        raise Unreadable(fields.where, "tier must be memory or user") from None


def _memory(fields: Fields, level: Classification) -> MemoryItem:
    return MemoryItem(
        fields.where,
        level,
        key=fields.text("key"),
        content=fields.text("content"),
        tags=fields.texts("tags"),
        expire_time=fields.time("expire_time"),
    )


def _note(fields: Fields, level: Classification) -> NoteItem:
    return NoteItem(
        fields.where,
        level,
        tier=_tier(fields),
        note_id=fields.text("note_id"),
        content=fields.text("content"),
    )


def _block(fields: Fields, level: Classification) -> BlockItem:
    return BlockItem(fields.where, level, label=fields.text("label"), content=fields.text("content"))


def _passage(fields: Fields, level: Classification) -> PassageItem:
    return PassageItem(
        fields.where,
        level,
        passage_id=fields.text("passage_id"),
        content=fields.text("content"),
        tags=fields.texts("tags"),
        thread=fields.text("thread", default="") or None,
        author=fields.text("author", default="") or None,
        event_time=fields.time("event_time"),
        expire_time=fields.time("expire_time"),
    )


_READERS: dict[str, Callable[[Fields, Classification], Item]] = {
    "memory": _memory,
    "note": _note,
    "block": _block,
    "passage": _passage,
}
