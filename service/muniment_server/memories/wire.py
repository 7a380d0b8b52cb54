"""Memories in the contract."""

from __future__ import annotations

from muniment.v1 import memory_pb2, memory_service_pb2
from muniment_server.domain.items import Item
from muniment_server.items.paging import etag
from muniment_server.items.wire import level_to_proto, time_to_proto
from muniment_server.search.search import Match


def memory_to_proto(item: Item) -> memory_pb2.Memory:
    """A memory."""
    return memory_pb2.Memory(
        key=item.name,
        content=item.content,
        tags=item.tags,
        classification=level_to_proto(item.level),
        etag=etag(item.version),
        create_time=time_to_proto(item.create_time),
        update_time=time_to_proto(item.update_time),
        expire_time=time_to_proto(item.expire_time),
    )


def result_to_proto(match: Match) -> memory_service_pb2.MemoryResult:
    """A result of a search."""
    return memory_service_pb2.MemoryResult(memory=memory_to_proto(match.item), score=match.score, snippet=match.snippet)
