"""What the model speaks of: what is remembered, what is expected, and how it is shown."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from google.protobuf.message import Message
from google.rpc import status_pb2

from muniment.v1 import agent_pb2, note_pb2
from muniment_server.transport.server import SERVICES
from tests.support.services import Outcome

METHODS = {method.name: method for service in SERVICES for method in service.methods}
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
"""What else a query may hold that is more than stop words and signs; no item does."""
LATER = "?"
"""Prefix of the placeholders in an expected message: values that the model cannot predict."""
NAMES = {"Memory": "key", "Note": "note_id", "Block": "label", "Passage": "passage_id"}
"""What each kind of item is named by."""


class Disagreement(AssertionError):
    """The service does not answer as it must."""


class Refused(Exception):
    """The service must say no. *detail* must be among the details of the status."""

    def __init__(self, reason: str, detail: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Refusal:
    """A no, with its reason, and what must come with it."""

    reason: str
    detail: Any = None


@dataclass(frozen=True)
class Found:
    """A search's answer: what must be found, what may be, at most how many, whether embeddings are compared, and the
    least relevance.
    """

    matching: set[str]
    items: Mapping[str, Message]
    limit: int
    semantic: bool
    least: float
    usage: note_pb2.Usage | None = None


@dataclass(frozen=True)
class Untold:
    """OK, with an answer that this model does not predict: the audit."""

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
    """The live version of one name at one level."""

    symbol: str
    revision: int
    content: str
    created: datetime
    updated: datetime
    tags: list[str] = field(default_factory=list)
    earlier: list[Version] = field(default_factory=list)
    """Its revisions before, the oldest first."""
    earlier_names: set[str] = field(default_factory=set)
    expires: datetime | None = None
    tier: int = 1
    thread: str = ""
    author: str = ""
    event_time: datetime | None = None

    @property
    def etag(self) -> str:
        return f"{self.symbol}.{self.revision}"

    def revise(self, now: datetime) -> None:
        """Begin the next revision."""
        self.earlier.append(replace(self, earlier=[]))
        self.revision, self.updated = self.revision + 1, now


Levels = dict[int, Version]
"""The live versions of one name, by label."""
ByName = dict[str, Levels]
"""The items of one kind, by name."""
Deleted = dict[tuple[str, int], list[Version]]
"""The deleted items of one kind, by name and level: the one that was deleted last comes last."""


@dataclass
class Conversation:
    taint: int


@dataclass(eq=False)
class Agent:
    """An agent with all that it remembers, and the agents that read its shared blocks, by label."""

    shown: agent_pb2.Agent
    conversations: dict[tuple[str, int], Conversation] = field(default_factory=dict)
    """By name and ceiling."""
    memories: ByName = field(default_factory=dict)
    notes: ByName = field(default_factory=dict)
    blocks: ByName = field(default_factory=dict)
    passages: ByName = field(default_factory=dict)
    shared: dict[str, list[Agent]] = field(default_factory=dict)
    deleted: dict[int, Deleted] = field(default_factory=lambda: {1: {}, 3: {}, 4: {}})
    """By kind."""


@dataclass
class Session:
    tenant: str
    agent: Agent
    conversation_id: str
    ceiling: int
    created: datetime
    expires: datetime
    read_only: bool = False
    closed: datetime | None = None
    renewed: datetime | None = None

    @property
    def conversation(self) -> Conversation:
        return self.agent.conversations[self.conversation_id, self.ceiling]


def random_id(known: str, actual: str) -> str:
    """An id made by the server is a UUID of version 4."""
    return actual if known.startswith(LATER) and uuid.UUID(actual).version == 4 else known


def items_in(message: Any) -> Iterator[Any]:
    """The items in an answer, in its order."""
    if message.DESCRIPTOR.name in NAMES:
        yield message
        return
    for one, value in message.ListFields():
        if one.message_type is not None and not one.message_type.GetOptions().map_entry:
            for inner in value if one.is_repeated else (value,):
                yield from items_in(inner)


def stamp(time: datetime | None) -> Any:
    """The messages take a datetime for a Timestamp; their stubs do not say so."""
    return time


# A label is a number: twice its level, less one if it is trusted. So the highest visible number shadows the others.

LABELS = range(1, 9)
PUBLIC = 2


def level_of(label: int) -> Any:
    """The level of a label: a number of the enum Classification."""
    return (label + 1) // 2


def integrity_of(label: int) -> Any:
    """The integrity of a label: a number of the enum Integrity, 1 if it is trusted."""
    return label % 2


def label_from(level: int, integrity: int) -> int:
    """The label of a level and an integrity, as requests name them."""
    return 2 * level - integrity


def flows(source: int, target: int) -> bool:
    """Whether what has the label *source* may reach *target*: neither half may get lost."""
    return bool(level_of(source) <= level_of(target) and integrity_of(source) >= integrity_of(target))


def joined(one: int, other: int) -> int:
    """The least label that both flow to."""
    labels = (one, other)
    return label_from(max(map(level_of, labels)), min(map(integrity_of, labels)))


def labeled(label: int) -> dict[str, Any]:
    """The fields of an item with this label."""
    return {"classification": level_of(label), "integrity": integrity_of(label)}


def join(items: Iterable[Any]) -> Any:
    """The level of an answer with these items."""
    return max((item.classification for item in items), default=1)


def page_size(asked: int) -> int:
    return min(asked or 50, 250)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def stems_of(text: str) -> set[str]:
    """The stems of the alphabet in *text*, and what else a query may hold."""
    words = text.lower().split()
    return {stem for word in words for stem in (*_ASKED_ONLY.get(word, ()), STEMS.get(word)) if stem}


def exact_words_of(text: str) -> set[str]:
    """The words of the alphabet in *text*."""
    return STEMS.keys() & set(text.lower().split())


def details_of(outcome: Outcome) -> list[Any]:
    """The details of a status, packed."""
    statuses = (value for name, value in outcome.trailers if name == "grpc-status-details-bin")
    return [detail for value in statuses for detail in status_pb2.Status.FromString(value).details]


def agree(rpc: str, holds: bool, otherwise: str) -> None:
    if not holds:
        raise Disagreement(f"{rpc}: {otherwise}")
