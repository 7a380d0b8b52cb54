"""Keyed memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification, Integrity
from muniment.values.versions import NewerBelow


@dataclass(frozen=True, slots=True)
class Memory:
    """One version of one keyed memory, as a session sees it.

    Pass its *etag* to a write to change only this version. An *expire_time* of None: it never expires. *newer_below*: a
    lower version is newer, such as a correction.
    """

    key: str = field(repr=False)
    content: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    classification: Classification
    etag: str
    create_time: datetime
    update_time: datetime
    expire_time: datetime | None
    newer_below: NewerBelow | None = None
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to save. With *etag*, only that version is replaced."""

    key: str = field(repr=False)
    content: str = field(repr=False)
    tags: Iterable[str] = field(default=(), repr=False)
    expire_time: datetime | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryRenamed:
    """A memory under its new key. *revealed* is the level of the lower version of the old key that is now visible."""

    memory: Memory
    revealed: Classification | None


@dataclass(frozen=True, slots=True)
class DeletedCount:
    """How many items a call deleted, and whether there are *more*: then call again."""

    deleted_count: int
    more: bool


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page of memories. *classification* is the highest level among them, PUBLIC if there are none."""

    memories: tuple[Memory, ...]
    next_page_token: str = field(repr=False)
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """One match of a search. Scores are comparable only within one response; higher is better."""

    memory: Memory
    score: float
    snippet: str = field(repr=False)
    relevance: float
    """How well it fits the query, from 0 to 1, comparable between searches. Below 0.3 it hardly fits."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The best matches, best first.

    *classification* is the highest level among them, PUBLIC if there are none. *semantic*: whether
    embeddings were compared, and not only words. *reranked*: whether a reranker ordered the matches.
    """

    results: tuple[MemoryResult, ...]
    classification: Classification
    semantic: bool
    reranked: bool = False
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[MemoryResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)
