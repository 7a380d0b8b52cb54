"""The items of an agent by kind: counted at each level, and the first of them to show.

Each level is read by an untrusted and by a trusted session, and only the versions with exactly their labels are kept,
as for `muniment export`. The versions arrive from the highest label down, so that a version is shadowed if its name
came before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from muniment import Block, Classification, Integrity, Memory, Note, NotePage, Passage, SessionClient, Tier, Usage
from muniment._calls import pages
from muniment.cli.transfer.gather import labeled
from muniment.cli.transfer.progress import Advance
from muniment.cli.transfer.sessions import Sessions

MAX_NAMES = 200
"""How many names of one kind a page shows."""
MAX_CHARS = 1000
"""How many code points of a text a page shows."""
_PAGE_SIZE = 250


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an item, with the beginning of its text.

    *place* sorts the versions of its kind; *bytes* are those of the whole text, in UTF-8.
    """

    name: str = field(repr=False)
    level: Classification
    text: str = field(repr=False)
    more_chars: int
    bytes: int
    time: datetime
    place: tuple[float, str] = field(repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    thread: str | None = field(default=None, repr=False)
    author: str | None = field(default=None, repr=False)
    expire_time: datetime | None = None
    newer: Classification | None = None
    """The level of a newer version below."""
    etag: str = field(default="", repr=False)
    """Empty for passages, and for blocks of other agents, whose audit log is another."""
    store_time: datetime | None = None
    """When a passage was stored. Its *time* is that of what it says."""
    trusted: bool = False


@dataclass(slots=True)
class Count:
    """How many items of one kind one level has, how many of them are shadowed, and the bytes of their texts."""

    items: int = 0
    shadowed: int = 0
    bytes: int = 0


class Kind:
    """The items of one kind. Holds every name, but at most MAX_NAMES of each level with their texts."""

    def __init__(self, title: str, levels: Iterable[Classification], *, named: bool = True) -> None:
        """*named* is false if the names are ids that the service chose."""
        self.title = title
        self.named = named
        self.counts = {level: Count() for level in levels}
        self._names: set[str] = set()
        self._kept: dict[str, list[Version]] = {}

    def add(self, version: Version) -> None:
        """Count a version, which is not above those added before."""
        count = self.counts[version.level]
        shadowed = version.name in self._names
        if shadowed and version.name in self._kept:
            self._kept[version.name].append(version)
        if not shadowed and count.items - count.shadowed < MAX_NAMES:
            self._kept[version.name] = [version]
        self._names.add(version.name)
        count.items += 1
        count.shadowed += shadowed
        count.bytes += version.bytes

    @property
    def shown(self) -> list[list[Version]]:
        """The versions of the first MAX_NAMES names, the highest version first."""
        return sorted(self._kept.values(), key=lambda versions: versions[0].place)[:MAX_NAMES]

    @property
    def names(self) -> int:
        """How many names there are."""
        return len(self._names)


class Items:
    """All kinds of items at some levels, and how much of the budgets of notes a session at each level sees used."""

    def __init__(self, levels: Iterable[Classification]) -> None:
        each = list(levels)
        self.blocks = Kind("Blocks", each)
        self.shared = Kind("Blocks shared with it", each)
        self.notes = {
            Tier.MEMORY: Kind("Notes", each, named=False),
            Tier.USER: Kind("User profile", each, named=False),
        }
        self.memories = Kind("Memories", each)
        self.passages = Kind("Passages", each, named=False)
        self.usage: dict[Classification, list[Usage]] = {level: [] for level in each}

    @property
    def kinds(self) -> list[Kind]:
        """All kinds, in the order in which they are shown."""
        return [self.blocks, self.shared, *self.notes.values(), self.memories, self.passages]


def read_items(untrusted: Sessions, trusted: Sessions, agent_id: str, advance: Advance) -> Items:
    """Read the items of an agent at the levels of both sessions, which are the same."""
    items = Items(untrusted)
    for level in sorted(untrusted, reverse=True):
        for sessions in (untrusted, trusted):
            _read_label(items, sessions[level], agent_id, advance)
    return items


def _read_label(items: Items, session: SessionClient, agent_id: str, advance: Advance) -> None:
    for block in labeled(session, session.list_blocks(page_size=_PAGE_SIZE)):
        if block.owner_agent_id == agent_id:
            items.blocks.add(replace(_block(block, block.label), etag=block.etag))
        else:
            items.shared.add(_block(block, f"{block.owner_agent_id}/{block.label}"))
        advance(1)
    for tier, kind in items.notes.items():
        for notes in pages(partial(_note_page, session, tier)):
            for note in labeled(session, notes):
                kind.add(_note(note))
                advance(1)
        if session.session.integrity is Integrity.UNTRUSTED:  # which sees all that counts
            items.usage[session.session.taint].append(notes.usage)
    for memory in labeled(session, session.list_memories(page_size=_PAGE_SIZE)):
        items.memories.add(_memory(memory))
        advance(1)
    for passage in labeled(session, session.list_passages(page_size=_PAGE_SIZE)):
        items.passages.add(_passage(passage))
        advance(1)


def _note_page(session: SessionClient, tier: Tier, token: str) -> NotePage:
    return session.list_notes_page(tier, page_size=_PAGE_SIZE, page_token=token)


def _block(block: Block, name: str) -> Version:
    return _version(block, name, block.update_time, (0, name))


def _note(note: Note) -> Version:
    version = _version(note, note.note_id, note.update_time, (note.create_time.timestamp(), note.note_id))
    return replace(version, etag=note.etag)


def _memory(memory: Memory) -> Version:
    version = _version(memory, memory.key, memory.update_time, (0, memory.key))
    return replace(version, tags=memory.tags, expire_time=memory.expire_time, etag=memory.etag)


def _passage(passage: Passage) -> Version:
    place = (-passage.event_time.timestamp(), passage.passage_id)
    version = _version(passage, passage.passage_id, passage.event_time, place)
    return replace(
        version,
        tags=passage.tags,
        thread=passage.thread,
        author=passage.author,
        expire_time=passage.expire_time,
        store_time=passage.create_time,
    )


def _version(item: Block | Note | Memory | Passage, name: str, time: datetime, place: tuple[float, str]) -> Version:
    return Version(
        name=name,
        level=item.classification,
        trusted=item.integrity is Integrity.TRUSTED,
        text=item.content[:MAX_CHARS],
        more_chars=max(0, len(item.content) - MAX_CHARS),
        bytes=len(item.content.encode()),
        time=time,
        place=place,
        newer=item.newer_below.classification if item.newer_below else None,
    )
