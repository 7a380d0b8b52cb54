"""Values for hosts: agents, sessions, audit events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from muniment.values.levels import Classification, Integrity, ItemKind


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The settings of the two tiers of notes. Limits are in Unicode code points.

    None means the default when an agent is created, and no change when it is updated.
    """

    memory_enabled: bool | None = None
    user_profile_enabled: bool | None = None
    memory_char_limit: int | None = None
    user_char_limit: int | None = None


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What the sessions of an agent may take. Each limit holds for each level by itself.

    None means the default when an agent is created, and no change when it is updated.
    """

    calls_per_second: int | None = None
    """Of each session, and of all sessions at one level, at each worker of a server."""
    max_items: int | None = None
    max_bytes: int | None = None
    """Of revisions, passages and index."""
    max_revisions: int | None = None
    """Of one item."""
    memory_ttl: timedelta | None = None
    """How long after its save a memory expires whose save names no expire time. Zero: it does not."""
    passage_ttl: timedelta | None = None
    """The same for passages."""


@dataclass(frozen=True, slots=True)
class AgentStorage:
    """What an agent stores with one label."""

    classification: Classification
    items: int
    bytes: int
    """Of revisions, passages and index."""
    nearly_full: bool
    """Whether one of the two is at 80 % of its limit or above."""
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class Agent:
    """An owner of items."""

    agent_id: str
    display_name: str
    language: str
    ceiling: Classification | None
    """The highest level that its conversations may reach. None if the key does not reach it."""
    memory_settings: MemorySettings
    create_time: datetime
    update_time: datetime
    limits: AgentLimits
    storage: tuple[AgentStorage, ...] = ()
    """What it stores at each level up to its ceiling and the key's. Only `HostClient.get_agent` asks for it."""
    known_from: Classification | None = None
    """From which ceiling on keys know of it. None from a server that is older than this client."""
    held: bool = False
    """Whether an operator keeps all that it has: nothing of it can be erased or purged."""


@dataclass(frozen=True, slots=True)
class SkippedAgents:
    """The agents that an erasure of every agent has left out: held, or with a ceiling above the key's."""

    agent_ids: tuple[str, ...]
    """Up to 100 of them."""
    count: int
    """How many the key knows of."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it was when it was read. A host may raise its taint at any time."""

    session_id: str
    agent_id: str
    conversation_id: str
    taint: Classification
    create_time: datetime
    expire_time: datetime
    close_time: datetime | None
    ceiling: Classification | None = None
    """The highest level that its conversation may reach. Only hosts see it."""
    integrity: Integrity = Integrity.UNTRUSTED
    """That of its conversation. A host may raise the conversation to UNTRUSTED at any time."""
    read_only: bool = False
    """Whether it may only read."""


@dataclass(frozen=True, slots=True)
class AuditCheckpoint:
    """The last seal of the audit log at one level and integrity. *time* is None if nothing was sealed."""

    classification: Classification
    seal_number: int
    event_count: int
    head_hash: str
    """SHA-256, in hexadecimal."""
    time: datetime | None
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One effect, read or refusal. Fields that do not apply are None.

    *kind* is also None for a kind that this client does not know.
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
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session that did it."""
