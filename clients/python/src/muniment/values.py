"""What the service keeps and shows, as values.

Times are aware and in UTC. No repr holds content, keys, tags, snippets or page tokens, so that a value
may be logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum


class Classification(IntEnum):
    """A sensitivity level. A higher level dominates a lower one."""

    PUBLIC = 1
    INTERNAL = 2
    CONFIDENTIAL = 3
    RESTRICTED = 4

    def can_flow_to(self, target: Classification) -> bool:
        """Whether data at this level may reach *target*."""
        return self <= target


class ItemKind(IntEnum):
    """A kind of item."""

    MEMORY = 1
    NOTE = 2
    BLOCK = 3
    PASSAGE = 4


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How the two tiers of notes are kept; limits in Unicode code points.

    None means the default when an agent is created, and no change when it is updated.
    """

    memory_enabled: bool | None = None
    user_profile_enabled: bool | None = None
    memory_char_limit: int | None = None
    user_char_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """An owner of items. Carries nothing derived from them."""

    agent_id: str
    display_name: str
    language: str
    memory_settings: MemorySettings
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """One session as it was at one moment. A host may raise its taint at any other."""

    session_id: str
    agent_id: str
    conversation_id: str
    taint: Classification
    create_time: datetime
    expire_time: datetime
    close_time: datetime | None


@dataclass(frozen=True, slots=True)
class Memory:
    """One version of one keyed memory, as a session sees it.

    Give its *etag* back to change nothing but this version. An *expire_time* of None: never forgotten.
    """

    key: str = field(repr=False)
    content: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    classification: Classification
    etag: str
    create_time: datetime
    update_time: datetime
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page of memories. *classification* is the highest level among them, PUBLIC when there are none."""

    memories: tuple[Memory, ...]
    next_page_token: str = field(repr=False)
    classification: Classification

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """One match of a search. Scores compare within one answer only: higher is better."""

    memory: Memory
    score: float
    snippet: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The best matches, best first.

    *classification* is the highest level among them, PUBLIC when there are none. *semantic*: whether
    meaning was compared too, and not words alone.
    """

    results: tuple[MemoryResult, ...]
    classification: Classification
    semantic: bool

    def __iter__(self) -> Iterator[MemoryResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One thing that was done, or refused. What does not apply is None.

    *kind* is None for a kind that this client does not know, too.
    """

    event_id: str
    time: datetime
    classification: Classification
    agent_id: str | None
    session_id: str | None
    host_key_id: str | None
    method: str
    outcome: str
    kind: ItemKind | None
    item_id: str | None
    revision: int | None
    result_count: int
    reason: str
