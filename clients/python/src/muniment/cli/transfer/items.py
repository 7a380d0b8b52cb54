"""The items of an agent as a file contains them."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, TypeAlias

from muniment import Classification, Integrity, Tier
from muniment._reserved import RESERVED, is_reserved
from muniment.cli.failures import Failure

_MAX_BYTES = 1024 * 1024 - 1024
"""The size limit of the text in one request, which may have 1 MiB in all."""
_NAMESPACE = uuid.UUID("6c0f2f5e-5d0b-5d0a-9a53-6d756e696d65")
"""The namespace of ids that are derived from another system's. If it changed, a second import would duplicate items."""


class Unreadable(Failure):
    """A file, or one place in it, cannot be imported. The message contains no content."""

    def __init__(self, where: str, rule: str, hint: str = "") -> None:
        super().__init__(f"{where}: {rule}" if where else rule, hint or "nothing was imported; correct the file")


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One version of a keyed memory."""

    kind: ClassVar = "memory"
    where: str = field(compare=False)
    level: Classification
    key: str = field(repr=False)
    content: str = field(repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    expire_time: datetime | None = None

    @property
    def name(self) -> str:
        """Unique among items of one kind and level."""
        return self.key


@dataclass(frozen=True, slots=True)
class NoteItem:
    """One version of a note."""

    kind: ClassVar = "note"
    where: str = field(compare=False)
    level: Classification
    tier: Tier
    note_id: str
    content: str = field(repr=False)

    @property
    def name(self) -> str:
        """Unique among items of one kind and level."""
        return self.note_id


@dataclass(frozen=True, slots=True)
class BlockItem:
    """One version of one of the agent's own blocks."""

    kind: ClassVar = "block"
    where: str = field(compare=False)
    level: Classification
    label: str = field(repr=False)
    content: str = field(repr=False)

    @property
    def name(self) -> str:
        """Unique among items of one kind and level."""
        return self.label


@dataclass(frozen=True, slots=True)
class PassageItem:
    """One passage. An *event_time* of None is the time at which it is stored."""

    kind: ClassVar = "passage"
    where: str = field(compare=False)
    level: Classification
    passage_id: str
    content: str = field(repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    thread: str | None = field(default=None, repr=False)
    author: str | None = field(default=None, repr=False)
    event_time: datetime | None = None
    expire_time: datetime | None = None

    @property
    def name(self) -> str:
        """Unique among items of one kind and level."""
        return self.passage_id


def oldest_first(passages: Iterable[PassageItem]) -> Iterator[PassageItem]:
    """The passages by event time; those without one come last."""
    return iter(sorted(passages, key=lambda item: item.event_time.timestamp() if item.event_time else float("inf")))


Item: TypeAlias = MemoryItem | NoteItem | BlockItem | PassageItem
KINDS = ("memory", "note", "block", "passage")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a file: items, in the order to write them, and remarks about what was skipped."""

    items: tuple[Item, ...]
    remarks: tuple[str, ...] = ()
    integrity: Integrity | None = None
    """That of the sessions that wrote all items. None: the file does not say."""


def derived_id(agent_id: str, source: str, own_id: str) -> str:
    """The id of the item that *source* calls *own_id*: the same in every import into that agent."""
    name = "\0".join((agent_id, source, own_id)).encode(errors="backslashreplace").decode()
    return str(uuid.uuid5(_NAMESPACE, name))


def as_label(name: str) -> str:
    """A block's label that is as near as can be to *name*, which may be a path. The server knows newer letters."""
    label = "".join(each if _may_be_in_label(each) else "_" for each in name.lstrip("/").replace("/", "."))
    return f"_{label}" if label[:1] in (".", "-") else label


def _may_be_in_label(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Cn") or character in "_.-"


def checked(items: Iterable[Item]) -> tuple[Item, ...]:
    """*items* in the form in which the server stores them, for comparison. Raises Unreadable for a repeated name."""
    seen: dict[tuple[str, Classification, str], str] = {}
    kept: list[Item] = []
    for item in items:
        _require_text(item)
        right = _as_kept(item)
        name = (right.kind, right.level, right.name)
        if name in seen:
            raise Unreadable(right.where, f"the same {right.kind} at the same level as in {seen[name]}")
        seen[name] = right.where
        kept.append(right)
    return tuple(kept)


def foreign(items: Iterable[Item]) -> tuple[Item, ...]:
    """*items* of another system, checked. Raises Unreadable for a name that would read as an item of an adapter."""
    kept = checked(items)
    for item in kept:
        if any(map(is_reserved, (item.name, *getattr(item, "tags", ())))):
            raise Unreadable(item.where, f"a key or tag begins with {RESERVED}, which only adapters may write")
    return kept


def _as_kept(item: Item) -> Item:
    """The item in the form that the contract prescribes: names in NFC, ids in lower case, tags trimmed and unique."""
    match item:
        case MemoryItem():
            return replace(item, key=_nfc(item.key), tags=_tags(item.tags))
        case NoteItem():
            return replace(item, note_id=item.note_id.lower())
        case BlockItem():
            return replace(item, label=_nfc(item.label))
        case PassageItem():
            return replace(item, passage_id=item.passage_id.lower(), tags=_tags(item.tags))


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_nfc(tag).strip() for tag in tags))


def _require_text(item: Item) -> None:
    """Refuse text that cannot be sent at all."""
    texts = [item.content, item.name, *(getattr(item, "tags", ()))]
    texts += [getattr(item, "thread", None) or "", getattr(item, "author", None) or ""]
    try:
        size = len("".join(texts).encode())
    except UnicodeEncodeError:
        raise Unreadable(item.where, "contains half of a surrogate pair, which is not text") from None
    if size > _MAX_BYTES:
        raise Unreadable(item.where, "is too large for one request", "shorten or split it")
