"""MemoryService. There is no repository of memories: the item store does all that they need."""

from __future__ import annotations

from muniment.v1 import memory_service_pb2 as pb
from muniment.v1 import memory_service_pb2_grpc, tag_match_pb2
from muniment_server.domain import text
from muniment_server.domain.items import ItemFilter, ItemKind
from muniment_server.items import item_store, paging
from muniment_server.items.item_store import NewVersion
from muniment_server.items.wire import joined, level_to_proto, optional_time_from_proto
from muniment_server.memories.wire import memory_to_proto, result_to_proto
from muniment_server.monitor.call import CallContext
from muniment_server.search.search import Searcher


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Memories, as one session sees them."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def SaveMemory(self, request: pb.SaveMemoryRequest, context: CallContext) -> pb.SaveMemoryResponse:
        new = NewVersion(
            kind=ItemKind.MEMORY,
            name=text.key(request.key),
            content=text.content(request.content),
            tags=text.tags(request.tags),
            etag=paging.version_of(request.etag),
            expire_time=optional_time_from_proto(request, "expire_time"),
        )
        with context.session_scope() as scope:
            memory = item_store.save(scope, new)
        return pb.SaveMemoryResponse(memory=memory_to_proto(memory))

    def GetMemory(self, request: pb.GetMemoryRequest, context: CallContext) -> pb.GetMemoryResponse:
        key = text.key(request.key)
        with context.session_scope() as scope:
            memory = item_store.get(scope, ItemKind.MEMORY, key)
        return pb.GetMemoryResponse(memory=memory_to_proto(memory))

    def ListMemories(self, request: pb.ListMemoriesRequest, context: CallContext) -> pb.ListMemoriesResponse:
        tag = text.tag(request.tag, field="tag") if request.tag else None
        pager = context.pager(tag)
        (after,) = pager.last(request.page_token) or [""]
        limit = paging.page_size(request.page_size)
        with context.session_scope() as scope:
            memories, more = item_store.list_by_name(
                scope, ItemKind.MEMORY, tags=[tag] if tag else [], after=after, limit=limit
            )
        return pb.ListMemoriesResponse(
            memories=map(memory_to_proto, memories),
            next_page_token=pager.token(memories[-1].name) if more else "",
            classification=joined(memory.level for memory in memories),
        )

    def SearchMemories(self, request: pb.SearchMemoriesRequest, context: CallContext) -> pb.SearchMemoriesResponse:
        query = text.query(request.query)
        wanted = ItemFilter(tuple(text.tags(request.tags)), request.tag_match == tag_match_pb2.TAG_MATCH_ANY)
        limit = paging.max_results(request.max_results)
        with context.session_scope() as scope:
            found = self._searcher.search(scope, ItemKind.MEMORY, query, limit=limit, wanted=wanted)
        return pb.SearchMemoriesResponse(
            results=map(result_to_proto, found.matches),
            classification=joined(match.item.level for match in found.matches),
            semantic=found.semantic,
        )

    def DeleteMemory(self, request: pb.DeleteMemoryRequest, context: CallContext) -> pb.DeleteMemoryResponse:
        key = text.key(request.key)
        etag = paging.version_of(request.etag)
        with context.session_scope() as scope:
            revealed = item_store.delete(scope, ItemKind.MEMORY, key, etag=etag)
        return pb.DeleteMemoryResponse(revealed=level_to_proto(revealed))
