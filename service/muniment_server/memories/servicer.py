"""MemoryService."""

from __future__ import annotations

from muniment.v1 import memory_service_pb2 as pb
from muniment.v1 import memory_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.items import ItemFilter, ItemKind
from muniment_server.items import item_store, paging
from muniment_server.items.checking import check_session
from muniment_server.items.deleting import delete_all
from muniment_server.items.renaming import rename_memory
from muniment_server.items.wire import joined, revealed_to_proto
from muniment_server.memories import repository
from muniment_server.memories.wire import filter_from_proto, memory_to_proto, new_version, result_to_proto
from muniment_server.monitor.call import CallContext
from muniment_server.search.search import Searcher


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Memories, as one session sees them."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def SaveMemory(self, request: pb.SaveMemoryRequest, context: CallContext) -> pb.SaveMemoryResponse:
        new = new_version(request)
        with context.session_scope() as scope:
            memory = item_store.save(scope, new)
        return pb.SaveMemoryResponse(memory=memory_to_proto(memory))

    def SaveMemories(self, request: pb.SaveMemoriesRequest, context: CallContext) -> pb.SaveMemoriesResponse:
        new = [new_version(memory, within=f"memories[{index}].") for index, memory in enumerate(request.memories)]
        repository.require_different_keys(new)
        repository.require_bounded_content(new)
        if request.validate_only:
            check_session(context)
            return pb.SaveMemoriesResponse(classification=joined(()))
        with context.session_scope() as scope:
            memories = repository.save_all(scope, new)
        return pb.SaveMemoriesResponse(
            memories=map(memory_to_proto, memories),
            classification=joined(memory.label for memory in memories),
        )

    def GetMemory(self, request: pb.GetMemoryRequest, context: CallContext) -> pb.GetMemoryResponse:
        key = text.key(request.key)
        with context.session_scope() as scope:
            memory = item_store.get(scope, ItemKind.MEMORY, key)
        return pb.GetMemoryResponse(memory=memory_to_proto(memory))

    def ListMemories(self, request: pb.ListMemoriesRequest, context: CallContext) -> pb.ListMemoriesResponse:
        tag = text.tag(request.tag, field="tag") if request.tag else None
        prefix = text.key_prefix(request.key_prefix)
        pager = context.pager(tag, *([prefix] if prefix else []))  # without one, tokens of older servers stay valid
        (after,) = pager.last(request.page_token) or [""]
        limit = paging.page_size(request.page_size)
        wanted = ItemFilter(name_prefix=prefix, tags=(tag,) if tag else ())
        with context.session_scope() as scope:
            memories, more = item_store.list_by_name(scope, ItemKind.MEMORY, wanted, after=after, limit=limit)
        return pb.ListMemoriesResponse(
            memories=map(memory_to_proto, memories),
            next_page_token=pager.token(memories[-1].name) if more else "",
            classification=joined(memory.label for memory in memories),
        )

    def SearchMemories(self, request: pb.SearchMemoriesRequest, context: CallContext) -> pb.SearchMemoriesResponse:
        query = text.query(request.query)
        wanted = filter_from_proto(request)
        limit = paging.max_results(request.max_results)
        with context.session_scope() as scope:
            found = self._searcher.search(
                scope, ItemKind.MEMORY, query, limit=limit, min_relevance=request.min_relevance, wanted=wanted
            )
        return pb.SearchMemoriesResponse(
            results=map(result_to_proto, found.matches),
            classification=joined(match.item.label for match in found.matches),
            semantic=found.semantic,
            reranked=found.reranked,
        )

    def DeleteMemory(self, request: pb.DeleteMemoryRequest, context: CallContext) -> pb.DeleteMemoryResponse:
        key = text.key(request.key)
        etag = paging.version_of(request.etag)
        with context.session_scope() as scope:
            revealed = item_store.delete(scope, ItemKind.MEMORY, key, etag=etag)
        return pb.DeleteMemoryResponse(**revealed_to_proto(revealed))

    def DeleteMemories(self, request: pb.DeleteMemoriesRequest, context: CallContext) -> pb.DeleteMemoriesResponse:
        tag = text.tag(request.tag, field="tag")
        with context.session_scope() as scope:
            deleted_count, more = delete_all(scope, ItemKind.MEMORY, tag=tag)
        return pb.DeleteMemoriesResponse(deleted_count=deleted_count, more=more)

    def RenameMemory(self, request: pb.RenameMemoryRequest, context: CallContext) -> pb.RenameMemoryResponse:
        key, new_key = text.key(request.key), text.key(request.new_key, field="new_key", is_new=True)
        if new_key == key:
            raise InvalidArgument(FieldViolation("new_key", "must be another key"))
        etag = paging.version_of(request.etag)
        with context.session_scope() as scope:
            memory, revealed = rename_memory(scope, key, new_key, etag=etag)
        return pb.RenameMemoryResponse(memory=memory_to_proto(memory), **revealed_to_proto(revealed))
