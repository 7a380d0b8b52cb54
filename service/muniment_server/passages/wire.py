"""Passages in the contract."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from muniment.v1 import passage_pb2, passage_service_pb2, tag_match_pb2
from muniment_server.domain import text
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.items import Item, ItemFilter
from muniment_server.items.item_store import NewPassage
from muniment_server.items.rows import StoredPassage
from muniment_server.items.wire import (
    id_from_proto,
    label_to_proto,
    newer_to_proto,
    optional_time_from_proto,
    time_to_proto,
)
from muniment_server.passages.repository import NEWEST, ImportProgress, Position
from muniment_server.search.search import Match

_Filtered: TypeAlias = passage_service_pb2.ListPassagesRequest | passage_service_pb2.SearchPassagesRequest


def new_passage(request: passage_service_pb2.StorePassageRequest, *, within: str = "") -> NewPassage:
    """The passage to store. Violations name its fields as fields *within* another message."""
    return NewPassage(
        passage_id=id_from_proto(request.passage_id),
        content=text.content(request.content, field=f"{within}content"),
        tags=tuple(text.tags(request.tags, field=f"{within}tags", is_new=True)),
        thread=text.key(request.thread, field=f"{within}thread", is_new=True) if request.thread else None,
        author=text.plain(request.author, field=f"{within}author") or None,
        event_time=optional_time_from_proto(request, "event_time", within=within),
        expire_time=optional_time_from_proto(request, "expire_time", within=within),
    )


def filter_from_proto(request: _Filtered) -> ItemFilter:
    """Which passages to return."""
    return ItemFilter(
        tags=tuple(text.tags(request.tags)),
        any_tag=request.tag_match == tag_match_pb2.TAG_MATCH_ANY,
        thread=text.key(request.thread, field="thread") if request.thread else None,
        start_time=optional_time_from_proto(request, "start_time"),
        end_time=optional_time_from_proto(request, "end_time"),
    )


def selection_from_proto(request: passage_service_pb2.DeletePassagesRequest) -> tuple[str | None, str | None]:
    """The tag and the thread of the passages to delete. Raises InvalidArgument if neither is set."""
    tag = text.tag(request.tag, field="tag") if request.tag else None
    thread = text.key(request.thread, field="thread") if request.thread else None
    if tag is None and thread is None:
        raise InvalidArgument(FieldViolation("tag", "set a tag, a thread, or both"))
    return tag, thread


def passage_to_proto(passage: Item | StoredPassage) -> passage_pb2.Passage:
    """A passage."""
    return passage_pb2.Passage(
        passage_id=passage.name,
        content=passage.content,
        tags=passage.tags,
        thread=passage.thread or "",
        author=passage.author or "",
        event_time=time_to_proto(passage.event_time),
        **label_to_proto(passage.label),
        create_time=time_to_proto(passage.create_time),
        expire_time=time_to_proto(passage.expire_time),
        newer_below=newer_to_proto(passage.newer_below) if isinstance(passage, Item) else None,
    )


def result_to_proto(match: Match) -> passage_service_pb2.PassageResult:
    """A result of a search."""
    return passage_service_pb2.PassageResult(
        passage=passage_to_proto(match.item), score=match.score, snippet=match.snippet, relevance=match.relevance
    )


def progress_to_proto(progress: ImportProgress) -> passage_pb2.ImportProgress:
    """How far an import has come."""
    return passage_pb2.ImportProgress(stored_count=progress.stored_count, existing_count=progress.existing_count)


def position_of(passage: Item) -> tuple[str, str, str]:
    """What a page token names: the passage after which the list continues."""
    assert passage.event_time is not None
    return passage.event_time.isoformat(), passage.create_time.isoformat(), passage.name


def position_from(last: list[str] | None) -> Position:
    """The position that a page token names."""
    if last is None:
        return NEWEST
    return datetime.fromisoformat(last[0]), datetime.fromisoformat(last[1]), last[2]
