"""What the model speaks of: what is remembered, what is expected, and the rules for single fields."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from muniment.v1 import agent_pb2, memory_pb2
from muniment_server.rpc.server import SERVICES

METHODS = {method.name: method for service in SERVICES for method in service.methods}
FOR_SESSIONS = {"SaveMemory", "GetMemory", "ListMemories", "SearchMemories", "DeleteMemory"}
FOR_BOTH = {"GetSession", "CloseSession"}
CODES = {
    "FIELD_INVALID": "INVALID_ARGUMENT",
    "PAGE_TOKEN_INVALID": "INVALID_ARGUMENT",
    "CREDENTIAL_INVALID": "UNAUTHENTICATED",
    "PRINCIPAL_NOT_ALLOWED": "PERMISSION_DENIED",
    "CEILING_EXCEEDED": "PERMISSION_DENIED",
    "AGENT_NOT_FOUND": "NOT_FOUND",
    "SESSION_NOT_FOUND": "NOT_FOUND",
    "MEMORY_NOT_FOUND": "NOT_FOUND",
    "AGENT_EXISTS": "ALREADY_EXISTS",
    "CONVERSATION_TAINTED": "FAILED_PRECONDITION",
    "WRITE_LEVEL_MISMATCH": "FAILED_PRECONDITION",
    "ETAG_STALE": "ABORTED",
    "TAINT_CHANGED": "ABORTED",
    "METHOD_UNKNOWN": "UNIMPLEMENTED",
}
STEMS = {
    "meeting": "meet",
    "meetings": "meet",
    "budget": "budget",
    "budgets": "budget",
    "running": "run",
    "runs": "run",
}
"""The alphabet of words, and what the English stemmer makes of them. Other words are never searched for."""
_ASKED_ONLY = {"user-name": ("user-nam", "user", "name")}
"""What else a query may hold that is more than stop words and signs; no memory does."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_ETAG = re.compile(r"[A-Za-z0-9_-]{27}")
LATER = "?"
"""Stands in an expected message for what nobody can foretell."""


class Disagreement(AssertionError):
    """The service does not answer as it must."""


class Refused(Exception):
    """The service must say no."""


@dataclass(frozen=True)
class Refusal:
    """A no, with its reason."""

    reason: str


@dataclass(frozen=True)
class Found:
    """A search's answer: who matches, with which score, and how many of them may be told."""

    scores: dict[str, float]
    memories: dict[str, memory_pb2.Memory]
    limit: int


@dataclass(frozen=True)
class Untold:
    """OK, with an answer that this model does not foretell: the audit."""

    ceiling: int


@dataclass(frozen=True)
class Page:
    """What a page token stands for. Its validity does not depend on who has seen it."""

    caller: str
    rpc: str
    filters: tuple[object, ...]
    taint: int
    last: Any


@dataclass
class Version:
    """The live version of one key at one level."""

    symbol: str
    revision: int
    content: str
    tags: list[str]
    created: datetime
    updated: datetime
    expires: datetime | None

    @property
    def etag(self) -> str:
        return f"{self.symbol}.{self.revision}"


@dataclass
class Conversation:
    taint: int


@dataclass
class Agent:
    """An agent with all that it remembers, by key and level."""

    shown: agent_pb2.Agent
    conversations: dict[str, Conversation] = field(default_factory=dict)
    memories: dict[str, dict[int, Version]] = field(default_factory=dict)


@dataclass
class Session:
    tenant: str
    agent: Agent
    conversation_id: str
    created: datetime
    expires: datetime
    closed: datetime | None = None

    @property
    def conversation(self) -> Conversation:
        return self.agent.conversations[self.conversation_id]


def random_id(known: str, told: str) -> str:
    """An id made by the server is a UUID of version 4."""
    return told if known == LATER and uuid.UUID(told).version == 4 else known


def memories_in(message: Any) -> Iterable[memory_pb2.Memory]:
    if hasattr(message, "memories"):
        return list(message.memories)
    return [message.memory] if hasattr(message, "memory") else []


def shown(key: str, level: int, version: Version) -> memory_pb2.Memory:
    return memory_pb2.Memory(
        key=key,
        content=version.content,
        tags=version.tags,
        classification=level,  # type: ignore[arg-type]  # a number of the enum
        etag=version.etag,
        create_time=stamp(version.created),
        update_time=stamp(version.updated),
        expire_time=stamp(version.expires),
    )


def stamp(time: datetime | None) -> Any:
    """The messages take a datetime for a Timestamp; their stubs do not say so."""
    return time


def join(memories: Iterable[memory_pb2.Memory]) -> Any:
    return max((memory.classification for memory in memories), default=1)


def page_size(asked: int) -> int:
    return min(asked or 50, 250)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def key_of(key: str) -> str:
    if nfc(key) != nfc(key).strip() or len(nfc(key)) > 256 or "\n" in key:
        raise Refused("FIELD_INVALID")
    return nfc(key)


def tags_of(tags: Iterable[str]) -> list[str]:
    stripped = [nfc(tag).strip() for tag in tags]
    if not all(stripped):
        raise Refused("FIELD_INVALID")
    return list(dict.fromkeys(stripped))


def score(query: str, text: str) -> float:
    """ts_rank of a query of any word, all of one weight: each next occurrence counts 1/n² of the first."""
    asked = {stem for word in query.lower().split() for stem in (*_ASKED_ONLY.get(word, ()), STEMS.get(word)) if stem}
    said = [STEMS.get(word, word) for word in text.lower().split()]
    sums = [sum(1 / n**2 for n in range(1, said.count(word) + 1)) for word in asked]
    return 0.1 * sum(sums) / 1.64493406685 / len(asked) if asked else 0.0


def stated(message: Any) -> Iterable[tuple[Any, Any]]:
    return ((field, getattr(message, field.name)) for field in message.DESCRIPTOR.fields)


def keeps_the_rule(name: str, value: Any) -> bool:
    """The rules of the contract, as far as programs break them."""
    match name:
        case "key":
            return 0 < len(value.encode()) <= 4096
        case "content":
            return 0 < len(value.encode()) <= 65536 and "\0" not in value
        case "tags":
            return len(value) <= 32 and all(value)
        case "etag":
            return not value or _ETAG.fullmatch(value) is not None
        case "query":
            return 0 < len(value) <= 1024
        case "page_size" | "max_results":
            return bool(value >= 0)
        case "tag_match":
            return bool(value in (0, 1, 2))
        case "taint":
            return bool(1 <= value <= 4)
        case "agent_id" | "conversation_id":
            return not value or _ID.fullmatch(value) is not None
        case "session_id":
            return not value or _is_uuid(value)
    return True


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def agree(rpc: str, holds: bool, otherwise: str) -> None:
    if not holds:
        raise Disagreement(f"{rpc}: {otherwise}")
