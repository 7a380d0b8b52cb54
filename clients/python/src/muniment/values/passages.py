"""Archival passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from muniment.values.levels import Classification, Integrity
from muniment.values.versions import NewerBelow


@dataclass(frozen=True, slots=True)
class Passage:
    """One archival passage, as a session sees it: text to be searched, written once.

    *thread* and *author* are None if they are not stated. An *expire_time* of None: it never expires.
    """

    passage_id: str
    content: str = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)
    thread: str | None = field(repr=False)
    author: str | None = field(repr=False)
    event_time: datetime
    classification: Classification
    create_time: datetime
    expire_time: datetime | None
    newer_below: NewerBelow | None = None
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage to store. An *event_time* of None is the time at which it is stored.

    *passage_id* is a UUID. With one, it is safe to import the passage again; without, the server generates one.
    """

    content: str = field(repr=False)
    tags: Iterable[str] = field(default=(), repr=False)
    thread: str | None = field(default=None, repr=False)
    author: str | None = field(default=None, repr=False)
    event_time: datetime | None = None
    passage_id: str | None = None
    expire_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class PassagePage:
    """One page of passages. *classification* is the highest level among them, PUBLIC if there are none."""

    passages: tuple[Passage, ...]
    next_page_token: str = field(repr=False)
    classification: Classification
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.passages)

    def __len__(self) -> int:
        return len(self.passages)


@dataclass(frozen=True, slots=True)
class PassageResult:
    """One match of a search. Scores are comparable only within one response; higher is better."""

    passage: Passage
    score: float
    snippet: str = field(repr=False)
    relevance: float
    """How well it fits the query, from 0 to 1, comparable between searches. Below 0.3 it hardly fits."""


@dataclass(frozen=True, slots=True)
class PassageSearchResults:
    """The best matches, best first.

    *classification* is the highest level among them, PUBLIC if there are none. *semantic*: whether
    embeddings were compared, and not only words. *reranked*: whether a reranker ordered the matches.
    """

    results: tuple[PassageResult, ...]
    classification: Classification
    semantic: bool
    reranked: bool = False
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""

    def __iter__(self) -> Iterator[PassageResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """How many passages of a stream were stored, and how many existed already."""

    stored_count: int
    existing_count: int
