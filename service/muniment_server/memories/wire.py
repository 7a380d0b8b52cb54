"""Memories in the contract."""

from __future__ import annotations

from muniment.v1 import memory_pb2, memory_service_pb2, tag_match_pb2
from muniment_server.domain import text
from muniment_server.domain.items import Item, ItemFilter, ItemKind
from muniment_server.items.item_store import NewVersion
from muniment_server.items.paging import NO_VERSION, etag, version_of
from muniment_server.items.wire import label_to_proto, newer_to_proto, optional_time_from_proto, time_to_proto
from muniment_server.search.search import Match

ABSENT = "absent"
"""The etag with which a save only creates."""


def new_version(request: memory_service_pb2.SaveMemoryRequest, *, within: str = "") -> NewVersion:
    """The version to save. Violations name its fields as fields *within* another message."""
    return NewVersion(
        kind=ItemKind.MEMORY,
        name=text.key(request.key, field=f"{within}key", is_new=True),
        content=text.content(request.content, field=f"{within}content"),
        tags=text.tags(request.tags, field=f"{within}tags", is_new=True),
        etag=NO_VERSION if request.etag == ABSENT else version_of(request.etag, field=f"{within}etag"),
        expire_time=optional_time_from_proto(request, "expire_time", within=within),
    )


def filter_from_proto(request: memory_service_pb2.SearchMemoriesRequest) -> ItemFilter:
    """Which memories to return."""
    return ItemFilter(
        name_prefix=text.key_prefix(request.key_prefix),
        tags=tuple(text.tags(request.tags)),
        any_tag=request.tag_match == tag_match_pb2.TAG_MATCH_ANY,
    )


def memory_to_proto(item: Item) -> memory_pb2.Memory:
    """A memory."""
    return memory_pb2.Memory(
        key=item.name,
        content=item.content,
        tags=item.tags,
        **label_to_proto(item.label),
        etag=etag(item.version),
        create_time=time_to_proto(item.create_time),
        update_time=time_to_proto(item.update_time),
        expire_time=time_to_proto(item.expire_time),
        newer_below=newer_to_proto(item.newer_below),
    )


def result_to_proto(match: Match) -> memory_service_pb2.MemoryResult:
    """A result of a search."""
    return memory_service_pb2.MemoryResult(
        memory=memory_to_proto(match.item), score=match.score, snippet=match.snippet, relevance=match.relevance
    )
