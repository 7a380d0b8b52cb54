"""What the service keeps and shows, as values."""

from __future__ import annotations

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
