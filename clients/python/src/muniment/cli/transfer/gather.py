"""Reads all items of an agent: every version at every level, in an order that can be written back.

A session sees the highest visible version of a name. So each level is read by its own session, and only the versions
with exactly its label are kept. In this way, shadowed versions are read, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Protocol, TypeVar

from muniment import Block, Classification, Integrity, Memory, Note, Passage, SessionClient, Tier
from muniment.cli.transfer.items import BlockItem, Item, MemoryItem, NoteItem, PassageItem
from muniment.cli.transfer.progress import Advance
from muniment.cli.transfer.sessions import Sessions


class _Labeled(Protocol):
    @property
    def classification(self) -> Classification: ...

    @property
    def integrity(self) -> Integrity: ...


class _Dated(_Labeled, Protocol):
    @property
    def create_time(self) -> datetime: ...


_L = TypeVar("_L", bound=_Labeled)
_D = TypeVar("_D", bound=_Dated)


def everything(sessions: Sessions, agent_id: str, advance: Advance) -> list[Item]:
    """The items of an agent at the levels of *sessions*.

    Memories and blocks are ordered by level and name. Notes, tier by tier, and passages are in the order in which they
    were written, whatever their level: so an import restores their order for sessions that see several levels.
    """
    items: list[Item] = []
    for session in sessions.values():
        items += map(_memory, _counted(labeled(session, session.list_memories()), advance))
    for tier in Tier:
        notes = {level: labeled(session, session.list_notes(tier)) for level, session in sessions.items()}
        items += map(_note, _as_written(notes, advance))
    for session in sessions.values():
        items += map(_block, _counted(own_blocks(session, agent_id), advance))
    passages = {level: labeled(session, _oldest_first(session)) for level, session in sessions.items()}
    items += map(_passage, _as_written(passages, advance))
    return items


def _oldest_first(session: SessionClient) -> Iterator[Passage]:
    return reversed(list(session.list_passages()))


def labeled(session: SessionClient, seen: Iterable[_L]) -> Iterator[_L]:
    """Those of the items that a session sees that have exactly its label: its level and its integrity."""
    label = (session.session.taint, session.session.integrity)
    return (each for each in seen if (each.classification, each.integrity) == label)


def own_blocks(session: SessionClient, agent_id: str) -> Iterator[Block]:
    """The agent's own blocks with exactly the label of the session."""
    return (block for block in labeled(session, session.list_blocks()) if block.owner_agent_id == agent_id)


def _counted(each: Iterable[_L], advance: Advance) -> Iterator[_L]:
    for one in each:
        advance(1)
        yield one


def _as_written(levels: Mapping[Classification, Iterable[_D]], advance: Advance) -> list[_D]:
    """The items of several levels by time; at equal times, the lower level first."""
    written = [
        (one.create_time, level, place, one)
        for level, each in levels.items()
        for place, one in enumerate(_counted(each, advance))
    ]
    return [one for *_, one in sorted(written, key=lambda each: each[:3])]


def _memory(memory: Memory) -> MemoryItem:
    return MemoryItem(
        "",
        memory.classification,
        key=memory.key,
        content=memory.content,
        tags=memory.tags,
        expire_time=memory.expire_time,
    )


def _note(note: Note) -> NoteItem:
    return NoteItem("", note.classification, tier=note.tier, note_id=note.note_id, content=note.content)


def _block(block: Block) -> BlockItem:
    return BlockItem("", block.classification, label=block.label, content=block.content)


def _passage(passage: Passage) -> PassageItem:
    return PassageItem(
        "",
        passage.classification,
        passage_id=passage.passage_id,
        content=passage.content,
        tags=passage.tags,
        thread=passage.thread,
        author=passage.author,
        event_time=passage.event_time,
        expire_time=passage.expire_time,
    )
