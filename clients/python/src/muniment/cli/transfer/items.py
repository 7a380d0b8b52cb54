"""Items outside of a server: what a file holds of an agent, and the rules that it must keep.

The rules are those of the contract, held here too, so that a file is refused before anything of it is written.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, TypeAlias

from muniment import Classification, Tier
from muniment.cli.failures import Failure
from muniment_server.domain import text
from muniment_server.domain.errors import InvalidArgument

CONTENT_BYTES = 64 * 1024
PASSAGE_BYTES = 256 * 1024
_MOST_TAGS = 32
_AUTHOR_LIMIT = 256
_NAMESPACE = uuid.UUID("6c0f2f5e-5d0b-5d0a-9a53-6d756e696d65")
"""Of ids that are made of a source's own. Never to change: by it a second import knows the first."""


class Unreadable(Failure):
    """A file, or one place in it, that cannot be imported. Says where and which rule, never what is there."""

    def __init__(self, where: str, rule: str, hint: str = "") -> None:
        super().__init__(f"{where}: {rule}" if where else rule, hint or "nothing was imported; mend the file")


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
        """What makes it one of its kind and level."""
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
        """What makes it one of its kind and level."""
        return self.note_id


@dataclass(frozen=True, slots=True)
class BlockItem:
    """One version of a block of the agent's own."""

    kind: ClassVar = "block"
    where: str = field(compare=False)
    level: Classification
    label: str = field(repr=False)
    content: str = field(repr=False)

    @property
    def name(self) -> str:
        """What makes it one of its kind and level."""
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
        """What makes it one of its kind and level."""
        return self.passage_id


Item: TypeAlias = MemoryItem | NoteItem | BlockItem | PassageItem
KINDS = ("memory", "note", "block", "passage")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a file: items in the order in which they are to be written, and what to say of the rest."""

    items: tuple[Item, ...]
    remarks: tuple[str, ...] = ()


def derived_id(agent_id: str, source: str, own_id: str) -> str:
    """The id of what *source* knows as *own_id*, the same whenever it is imported into that agent."""
    name = "\0".join((agent_id, source, own_id)).encode(errors="backslashreplace").decode()
    return str(uuid.uuid5(_NAMESPACE, name))


def checked(items: Iterable[Item]) -> tuple[Item, ...]:
    """*items* as they are kept: names in NFC, tags trimmed. Raises Unreadable, for a repeated name too."""
    seen: dict[tuple[str, Classification, str], str] = {}
    kept: list[Item] = []
    for item in items:
        with _saying(item.where):
            right = _checked(item)
        name = (right.kind, right.level, right.name)
        if name in seen:
            raise Unreadable(right.where, f"the same {right.kind} at the same level as in {seen[name]}")
        seen[name] = right.where
        kept.append(right)
    return tuple(kept)


@contextmanager
def _saying(where: str) -> Iterator[None]:
    """Turn a broken rule into Unreadable."""
    try:
        yield
    except InvalidArgument as error:
        violation = error.violations[0]
        raise Unreadable(where, f"{violation.field} {violation.rule}") from None
    except UnicodeEncodeError:
        raise Unreadable(where, "holds half of a surrogate pair, which is no text") from None


def _checked(item: Item) -> Item:
    match item:
        case MemoryItem():
            _require_content(item, at_most=CONTENT_BYTES)
            return replace(item, key=text.key(item.key), tags=_tags(item))
        case NoteItem():
            _require_content(item, at_most=CONTENT_BYTES)
            return replace(item, note_id=_uuid(item.where, "note_id", item.note_id))
        case BlockItem():
            _require_content(item, at_least=0, at_most=CONTENT_BYTES)
            return replace(item, label=text.label(item.label))
        case PassageItem():
            _require_content(item, at_most=PASSAGE_BYTES)
            return _checked_passage(item)


def _checked_passage(item: PassageItem) -> PassageItem:
    if item.author is not None:
        text.plain(item.author, field="author")
        if len(item.author) > _AUTHOR_LIMIT:
            raise Unreadable(item.where, f"author must be at most {_AUTHOR_LIMIT} code points")
    return replace(
        item,
        passage_id=_uuid(item.where, "passage_id", item.passage_id),
        tags=_tags(item),
        thread=text.key(item.thread, field="thread") if item.thread else None,
    )


def _require_content(item: Item, *, at_least: int = 1, at_most: int) -> None:
    size = len(text.content(item.content).encode())
    if not at_least <= size:
        raise Unreadable(item.where, "content must not be empty")
    if size > at_most:
        raise Unreadable(
            item.where,
            f"content has {size:,} bytes, and a {item.kind} holds {at_most:,} at most",
            "shorten or split it",
        )


def _tags(item: MemoryItem | PassageItem) -> tuple[str, ...]:
    if len(item.tags) > _MOST_TAGS:
        raise Unreadable(item.where, f"has {len(item.tags)} tags, and {_MOST_TAGS} are the most")
    return tuple(text.tags(item.tags))


def _uuid(where: str, name: str, given: str) -> str:
    try:
        made = str(uuid.UUID(given))
    except ValueError:
        made = ""
    if made != given.lower():  # braces and `urn:` are refused
        raise Unreadable(where, f"{name} must be a UUID")
    return made
