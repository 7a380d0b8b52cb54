"""MemoryService."""

from __future__ import annotations

from muniment.v1 import memory_service_pb2 as pb
from muniment.v1 import memory_service_pb2_grpc, tag_match_pb2
from muniment_server.domain import text
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Memories, as one session sees them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def SaveMemory(self, request: pb.SaveMemoryRequest, context: CallContext) -> pb.SaveMemoryResponse:
        key = text.key(request.key)
        content = text.content(request.content)
        tags = text.tags(request.tags)
        etag = paging.version_of(request.etag)
        expire_time = convert.optional_time_from_proto(request, "expire_time")
        with self._store.as_session(context.session, context.call) as view:
            memory = view.memories.save(key, content, tags=tags, expire_time=expire_time, etag=etag)
        return pb.SaveMemoryResponse(memory=convert.memory_to_proto(memory))

    def GetMemory(self, request: pb.GetMemoryRequest, context: CallContext) -> pb.GetMemoryResponse:
        key = text.key(request.key)
        with self._store.as_session(context.session, context.call) as view:
            memory = view.memories.get(key)
        return pb.GetMemoryResponse(memory=convert.memory_to_proto(memory))

    def ListMemories(self, request: pb.ListMemoriesRequest, context: CallContext) -> pb.ListMemoriesResponse:
        tag = text.tag(request.tag, field="tag") if request.tag else None
        pager = context.pager(tag)
        (after,) = pager.last(request.page_token) or [""]
        with self._store.as_session(context.session, context.call) as view:
            memories, more = view.memories.list(tag=tag, after=after, limit=paging.page_size(request.page_size))
        return pb.ListMemoriesResponse(
            memories=map(convert.memory_to_proto, memories),
            next_page_token=pager.token(memories[-1].key) if more else "",
            classification=convert.join(memory.classification for memory in memories),
        )

    def SearchMemories(self, request: pb.SearchMemoriesRequest, context: CallContext) -> pb.SearchMemoriesResponse:
        query = text.query(request.query)
        tags = text.tags(request.tags)
        any_tag = request.tag_match == tag_match_pb2.TAG_MATCH_ANY
        limit = paging.max_results(request.max_results)
        with self._store.as_session(context.session, context.call) as view:
            results, semantic = view.memories.search(query, tags=tags, any_tag=any_tag, limit=limit)
        return pb.SearchMemoriesResponse(
            results=map(convert.result_to_proto, results),
            classification=convert.join(result.memory.classification for result in results),
            semantic=semantic,
        )

    def DeleteMemory(self, request: pb.DeleteMemoryRequest, context: CallContext) -> pb.DeleteMemoryResponse:
        key = text.key(request.key)
        etag = paging.version_of(request.etag)
        with self._store.as_session(context.session, context.call) as view:
            revealed = view.memories.delete(key, etag=etag)
        return pb.DeleteMemoryResponse(revealed=convert.level_to_proto(revealed))
