"""Archival passages, as one session sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from psycopg.types.json import Jsonb

from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import (
    Conflict,
    FieldViolation,
    ImportProgress,
    InvalidArgument,
    PassageExists,
    PassageNotFound,
    Refusal,
)
from muniment_server.domain.records import ItemFilter, ItemKind, NewPassage, Passage, PassageResult
from muniment_server.items.store import Items, filter_columns, read_page
from muniment_server.monitor.paging import PAGE_BYTES
from muniment_server.monitor.session_scope import Fence, Query
from muniment_server.search.index import Text, index_query, text_of

_MOST_RUNS = 4
"""Each finds what other writers have stored meanwhile."""
_REFUSED: dict[str | None, Callable[[], Refusal]] = {
    "ALREADY_EXISTS": PassageExists,
    "PAST": lambda: _expired("passage.expire_time"),
}
Place = tuple[datetime, datetime, str]
"""Where a passage stands in a list: event time, create time, id."""
NEWEST: Place = (datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), "")


class Passages:
    """Passages at or below the session's taint. Written once, at its own level."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self._items = Items(fence, ItemKind.PASSAGE, PassageNotFound)

    def store(self, passage: NewPassage) -> Passage:
        """Store one passage; return it, or the one that is there with its id and content. Raises PassageExists."""
        for _ in range(_MOST_RUNS):
            (row,) = self._store([passage])
            match row.outcome:
                case "OK" | "EXISTS":
                    return _passage(row)
                case "ALREADY_EXISTS":
                    raise PassageExists
                case "PAST":
                    raise _expired("expire_time")
        raise Conflict

    def store_batch(self, batch: Sequence[NewPassage], progress: ImportProgress) -> ImportProgress:
        """Store passages of different ids in their order; return how far the stream has come.

        Raises PassageExists or InvalidArgument, with the progress up to the passage that it is about. Of those after it
        another writer's pace decides whether they are stored.
        """
        outcomes: list[str | None] = [None] * len(batch)
        for _ in range(_MOST_RUNS):
            places = [place for place, outcome in enumerate(outcomes) if outcome is None]
            rows = self._store([batch[place] for place in places])
            for place, row in zip(places, rows, strict=True):
                outcomes[place] = row.outcome
            refused = next((place for place, outcome in enumerate(outcomes) if outcome in _REFUSED), None)
            if refused is not None:
                error = _REFUSED[outcomes[refused]]()
                error.progress = progress.after(outcomes[:refused])
                raise error
            if None not in outcomes:
                return progress.after(outcomes)
        raise Conflict

    def get(self, passage_id: str) -> Passage:
        """One passage. Raises PassageNotFound."""
        return _passage(self._items.get(passage_id))

    def list(self, wanted: ItemFilter, *, before: Place, limit: int) -> tuple[Sequence[Passage], bool]:
        """Up to *limit* passages, newest first, those before *before*; and whether there are more."""
        event_time, create_time, passage_id = before
        parameters = {
            "before_event": event_time,
            "before_create": create_time,
            "before_name": passage_id,
            "limit": limit + 1,
            "page_bytes": PAGE_BYTES,
            **filter_columns(wanted),
        }
        rows, more = read_page(self._fence, Query("list_passages", parameters), ItemKind.PASSAGE, limit)
        return [_passage(row) for row in rows], more

    def search(self, query: str, wanted: ItemFilter, *, limit: int) -> tuple[Sequence[PassageResult], bool]:
        """Up to *limit* passages that match *query*, best first; and whether meaning was compared, too."""
        found = self._items.search(query, limit=limit, wanted=wanted)
        results = [PassageResult(_passage(match.row), match.score, match.snippet) for match in found.matches]
        return results, found.semantic

    def delete(self, passage_id: str) -> Classification | None:
        """Delete the own-level passage; return the level that is revealed.

        Raises WriteLevelMismatch or PassageNotFound.
        """
        return self._items.delete(passage_id, etag=None)

    def _store(self, batch: Sequence[NewPassage]) -> Sequence[Any]:
        """One row for each passage. Its outcome is null when another writer was there first: try again."""
        given = [self._given(position, passage) for position, passage in enumerate(batch)]
        texts = [_text(named, passage) for named, passage in zip(given, batch, strict=True)]
        return self._fence.write_many(
            Query("store_passages", {"passages": Jsonb(given), "count": len(given)}),
            index=index_query(ItemKind.PASSAGE, texts),
        )

    def _given(self, position: int, passage: NewPassage) -> dict[str, object]:
        return {
            "position": position,
            "name": passage.passage_id or str(self._fence.ids.new_uuid()),
            "item_id": str(self._fence.ids.new_uuid()),
            "change_id": str(self._fence.ids.new_uuid()),
            "content": passage.content,
            "tags": passage.tags,
            "thread": passage.thread,
            "author": passage.author,
            "event_time": passage.event_time and passage.event_time.isoformat(),
            "expire_time": passage.expire_time and passage.expire_time.isoformat(),
        }


def _text(given: Mapping[str, object], passage: NewPassage) -> Text:
    """What search finds of it, by author and tags too."""
    text = text_of(ItemKind.PASSAGE, str(given["name"]), passage.content, author=passage.author, tags=passage.tags)
    return {**text, "change_id": given["change_id"]}


def _expired(field: str) -> InvalidArgument:
    return InvalidArgument(FieldViolation(field, "must be in the future"))


def _passage(row: Any) -> Passage:
    return Passage(
        passage_id=row.name,
        content=row.content,
        tags=tuple(row.tags),
        thread=row.thread,
        author=row.author,
        event_time=row.event_time,
        classification=Classification(row.level),
        create_time=row.create_time,
        expire_time=row.expire_time,
    )
