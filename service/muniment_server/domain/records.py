"""What the service keeps and shows, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from uuid import UUID

from muniment_server.domain.classification import Classification


class ItemKind(IntEnum):
    """A kind of item. Numbers are those of the contract and of the tables."""

    MEMORY = 1
    NOTE = 2
    BLOCK = 3
    PASSAGE = 4


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """Who holds a host key: a tenant, up to a ceiling."""

    tenant: int
    host_key_id: UUID
    ceiling: Classification


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """Who holds a session token. The taint is what it was when last looked at: the fence decides."""

    tenant: int
    session_id: UUID
    taint: Classification


@dataclass(frozen=True, slots=True)
class Version:
    """One version of one item: what an etag stands for."""

    item_id: UUID
    revision: int


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items are asked for. None and empty: all. Only passages have a thread and times."""

    tags: tuple[str, ...] = ()
    any_tag: bool = False
    thread: str | None = None
    start_time: datetime | None = None
    """At or after it."""
    end_time: datetime | None = None
    """Before it."""


ALL_ITEMS = ItemFilter()


@dataclass(frozen=True, slots=True)
class Memory:
    """One version of one keyed memory."""

    key: str
    content: str
    tags: tuple[str, ...]
    classification: Classification
    version: Version
    create_time: datetime
    update_time: datetime
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """One match of a search. Scores compare within one answer only."""

    memory: Memory
    score: float
    snippet: str


class Tier(IntEnum):
    """One of an agent's two sets of notes. Numbers are those of the contract and of the tables."""

    MEMORY = 1
    USER = 2


@dataclass(frozen=True, slots=True)
class Note:
    """One version of one note."""

    note_id: str
    tier: Tier
    content: str
    classification: Classification
    version: Version
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True)
class NoteResult:
    """One match of a search. Scores compare within one answer only."""

    note: Note
    score: float
    snippet: str


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a tier's budget the notes take that a session sees, in Unicode code points."""

    tier: Tier
    used_chars: int
    limit_chars: int

    @property
    def percent(self) -> int:
        """Rounded down. May pass 100."""
        if self.limit_chars:
            return self.used_chars * 100 // self.limit_chars
        return 100 if self.used_chars else 0


@dataclass(frozen=True, slots=True)
class EditedNotes:
    """What a list of edits came to."""

    notes: tuple[Note, ...]
    """As stored, one for each that was added or updated."""
    revealed: tuple[Classification | None, ...]
    """The level at which a lower version is seen from now on, one for each that was deleted."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class NotePage:
    """Some notes of a tier, oldest first."""

    notes: Sequence[Note]
    more: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class Block:
    """One version of one core block."""

    owner_agent_id: str
    label: str
    content: str
    shared: bool
    """Another agent's, attached to this one."""
    classification: Classification
    version: Version
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage to be stored."""

    passage_id: str
    """Empty: the store makes one."""
    content: str
    tags: tuple[str, ...]
    thread: str | None
    author: str | None
    event_time: datetime | None
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage."""

    passage_id: str
    content: str
    tags: tuple[str, ...]
    thread: str | None
    author: str | None
    event_time: datetime
    classification: Classification
    create_time: datetime
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class PassageResult:
    """One match of a search. Scores compare within one answer only."""

    passage: Passage
    score: float
    snippet: str


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How the two tiers of notes are kept; limits in Unicode code points. None: not stated."""

    memory_enabled: bool | None = None
    user_profile_enabled: bool | None = None
    memory_char_limit: int | None = None
    user_char_limit: int | None = None


DEFAULT_MEMORY_SETTINGS = MemorySettings(
    memory_enabled=True, user_profile_enabled=True, memory_char_limit=2200, user_char_limit=1375
)


FIRST_BLOCKS = {"personality": "", "relationships": "", "current_state": ""}
"""The blocks, by label, that an agent starts with unless its host says otherwise."""


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
    """A credential for one conversation of an agent."""

    session_id: UUID
    agent_id: str
    conversation_id: str
    taint: Classification
    create_time: datetime
    expire_time: datetime
    close_time: datetime | None


DEFAULT_TTL = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One thing that was done, or refused."""

    event_id: UUID
    time: datetime
    classification: Classification
    agent_id: str | None
    session_id: UUID | None
    host_key_id: UUID | None
    method: str
    outcome: str
    kind: ItemKind | None
    item_id: UUID | None
    revision: int | None
    result_count: int | None
    reason: str | None
