"""Archival passages, as one session sees them. They are written once, at its own level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from muniment_server.domain.errors import (
    Conflict,
    PassageExists,
    Refusal,
)
from muniment_server.domain.items import PAGE_BYTES, Item, ItemFilter, ItemKind
from muniment_server.items import item_store
from muniment_server.items.item_store import NewPassage
from muniment_server.items.rows import ListedItem, StoredPassage
from muniment_server.monitor.session_scope import Query, SessionScope
from muniment_server.passages.batches import IndexedBatch
from muniment_server.search.search import filter_parameters

_MAX_RUNS = 4
"""Each run sees what other writers have stored meanwhile."""

Position: TypeAlias = tuple[datetime, datetime, str]
"""A position in a list: event time, create time, id."""
NEWEST: Position = (datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), "")


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import has come."""

    stored_count: int = 0
    existing_count: int = 0

    def after(self, outcomes: Sequence[str | None]) -> ImportProgress:
        """The progress after passages with these outcomes."""
        return ImportProgress(self.stored_count + outcomes.count("OK"), self.existing_count + outcomes.count("EXISTS"))


class ImportRefused(Exception):
    """A passage of a batch was refused."""

    def __init__(self, refusal: Refusal, progress: ImportProgress) -> None:
        super().__init__()
        self.refusal = refusal
        self.progress = progress


_REFUSED: Mapping[str | None, Callable[[], Refusal]] = {
    "ALREADY_EXISTS": PassageExists,
    "PAST": lambda: item_store.expired("passage.expire_time"),
}


def store(scope: SessionScope, passage: NewPassage) -> StoredPassage:
    """Store one passage; return it, or the existing one if it has the same id and content. Raises PassageExists."""
    for _ in range(_MAX_RUNS):
        (row,) = item_store.store_passages(scope, [item_store.indexed(passage)])
        match row.outcome:
            case "OK" | "EXISTS":
                return row
            case "ALREADY_EXISTS":
                raise PassageExists
            case "PAST":
                raise item_store.expired("expire_time")
    raise Conflict


def store_batch(scope: SessionScope, batch: IndexedBatch, progress: ImportProgress) -> ImportProgress:
    """Store passages with different ids, in order; return how far the import has come.

    Raises ImportRefused, with the progress up to the refused passage. Whether those after it are stored depends on
    other writers.
    """
    passages = batch.passages
    outcomes: list[str | None] = [None] * len(passages)
    for _ in range(_MAX_RUNS):
        undecided = [place for place, outcome in enumerate(outcomes) if outcome is None]
        given = [passages[place] for place in undecided]
        rows = item_store.store_passages(scope, given, more_follow=batch.more_follow)
        for place, row in zip(undecided, rows, strict=True):
            outcomes[place] = row.outcome
        refused = next((place for place, outcome in enumerate(outcomes) if outcome in _REFUSED), None)
        if refused is not None:
            raise ImportRefused(_REFUSED[outcomes[refused]](), progress.after(outcomes[:refused]))
        if None not in outcomes:
            return progress.after(outcomes)
    raise Conflict


def list_passages(
    scope: SessionScope, wanted: ItemFilter, *, before: Position, limit: int
) -> tuple[Sequence[Item], bool]:
    """Up to *limit* passages before *before*, newest first; and whether there are more."""
    event_time, create_time, passage_id = before
    parameters = {
        "before_event": event_time,
        "before_create": create_time,
        "before_name": passage_id,
        "limit": limit + 1,
        "page_bytes": PAGE_BYTES,
        **filter_parameters(wanted),
    }
    return item_store.read_page(scope, Query("list_passages", ListedItem, parameters), ItemKind.PASSAGE, limit)
