"""Calls for memories."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Literal

from muniment import _convert
from muniment._calls import Calls
from muniment._listing import Listing
from muniment.v1 import memory_pb2
from muniment.v1 import memory_service_pb2 as pb
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.values import (
    Classification,
    DeletedCount,
    Memory,
    MemoryPage,
    MemoryRenamed,
    MemoryResult,
    NewMemory,
    SearchResults,
)


class Memories:
    """Keyed memories, as one session sees them."""

    _calls: Calls

    @cached_property
    def _memories(self) -> MemoryServiceStub:
        return MemoryServiceStub(self._calls.channel)

    def save_memory(
        self,
        key: str,
        content: str,
        *,
        tags: Iterable[str] = (),
        expire_time: datetime | None = None,
        etag: str | None = None,
        timeout: float | None = None,
    ) -> Memory:
        """Create or replace the memory at the session's own level. Versions at other levels stay.

        *key* is 1 to 256 code points, *content* 1 byte to 128 KiB, *tags* up to 32 of up to 64 code points.
        Tags are replaced, not merged. With *etag*, only that version is replaced; otherwise EtagStale. With the
        etag `absent`, the memory is only created: EtagStale if one is visible.
        """
        request = _memory_to_proto(NewMemory(key, content, tags, expire_time, etag))
        return _memory(self._calls(self._memories.SaveMemory, request, timeout).memory)

    def save_memories(
        self, memories: Iterable[NewMemory], *, validate_only: bool = False, timeout: float | None = None
    ) -> tuple[Memory, ...]:
        """Save up to 100 memories in one transaction, all or none; return them in the same order.

        Each is saved as `save_memory` saves it. The `violations` of InvalidArgument and EtagStale name the memories
        that are refused, such as `memories[3].key`. Together they have at most 128 KiB of content.

        With *validate_only*, the server only checks the fields, and returns no memories.
        """
        request = _convert.message(
            pb.SaveMemoriesRequest, memories=map(_memory_to_proto, memories), validate_only=validate_only
        )
        return tuple(map(_memory, self._calls(self._memories.SaveMemories, request, timeout).memories))

    def get_memory(self, key: str, *, timeout: float | None = None) -> Memory:
        """The memory at its highest visible level. MemoryNotFound: none is visible."""
        request = _convert.message(pb.GetMemoryRequest, key=key)
        return _memory(self._calls(self._memories.GetMemory, request, timeout).memory)

    def list_memories(
        self,
        tag: str | None = None,
        *,
        key_prefix: str | None = None,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Listing[Memory]:
        """The visible memories by key, each at its highest visible level; pages are fetched as needed.

        Only those with *tag*, and those whose key begins with *key_prefix*, compared byte by byte after NFC. *timeout*
        is for each page. TaintChanged: the taint was raised between two pages; see `Listing.all`.
        """
        return Listing(
            lambda token: self.list_memories_page(
                tag, key_prefix=key_prefix, page_size=page_size, page_token=token, timeout=timeout
            ),
            lambda page: page.memories,
        )

    def list_memories_page(
        self,
        tag: str | None = None,
        *,
        key_prefix: str | None = None,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> MemoryPage:
        """One page, and the highest level in it. A *page_size* of 0 means 50; the most is 250."""
        request = _convert.message(
            pb.ListMemoriesRequest,
            tag=tag or "",
            key_prefix=key_prefix or "",
            page_size=page_size,
            page_token=page_token,
        )
        return _memory_page(self._calls(self._memories.ListMemories, request, timeout))

    def search_memories(
        self,
        query: str,
        *,
        max_results: int = 0,
        min_relevance: float = 0,
        tags: Iterable[str] = (),
        tag_match: Literal["all", "any"] = "all",
        key_prefix: str | None = None,
        timeout: float | None = None,
    ) -> SearchResults:
        """The memories that match a query in plain language, best first.

        *query* is 1 to 1024 code points; it has no syntax. A *max_results* of 0 means 10; the most
        is 100. Only those whose key begins with *key_prefix*, compared byte by byte after NFC. Results
        whose relevance is below *min_relevance*, from 0 to 1, are left out.
        """
        request = _convert.message(
            pb.SearchMemoriesRequest,
            query=query,
            max_results=max_results,
            min_relevance=min_relevance,
            tags=_convert.tags_to_proto(tags),
            tag_match=_convert.tag_match_to_proto(tag_match),
            key_prefix=key_prefix or "",
        )
        return _search_results(self._calls(self._memories.SearchMemories, request, timeout))

    def delete_memory(
        self, key: str, *, etag: str | None = None, timeout: float | None = None
    ) -> Classification | None:
        """Delete the session's own-level version; return the level of the lower version that is now visible, if any.

        WriteLevelMismatch: only lower versions are visible. MemoryNotFound: none is.
        """
        request = _convert.message(pb.DeleteMemoryRequest, key=key, etag=etag or "")
        return _convert.revealed(self._calls(self._memories.DeleteMemory, request, timeout))

    def delete_memories(self, tag: str, *, timeout: float | None = None) -> DeletedCount:
        """Delete the session's own-level memories with *tag*: at most 1,000 a call, by key, and fewer of long ones.

        Lower versions of the deleted keys are visible from then on.
        """
        response = self._calls(
            self._memories.DeleteMemories, _convert.message(pb.DeleteMemoriesRequest, tag=tag), timeout
        )
        return DeletedCount(response.deleted_count, response.more)

    def rename_memory(
        self, key: str, new_key: str, *, etag: str | None = None, timeout: float | None = None
    ) -> MemoryRenamed:
        """Give the session's own-level version another key. With *etag*, only that version; otherwise EtagStale.

        MemoryExists: a memory with the new key is visible. WriteLevelMismatch: only lower versions of *key* are.
        MemoryNotFound: none is.
        """
        request = _convert.message(pb.RenameMemoryRequest, key=key, new_key=new_key, etag=etag or "")
        response = self._calls(self._memories.RenameMemory, request, timeout)
        return MemoryRenamed(_memory(response.memory), _convert.revealed(response))


def _memory_to_proto(memory: NewMemory) -> pb.SaveMemoryRequest:
    if not isinstance(memory, NewMemory):
        raise TypeError("a memory to save must be a NewMemory")
    return _convert.message(
        pb.SaveMemoryRequest,
        key=memory.key,
        content=memory.content,
        tags=_convert.tags_to_proto(memory.tags),
        expire_time=_convert.time_to_proto(memory.expire_time),
        etag=memory.etag or "",
    )


def _memory(message: memory_pb2.Memory) -> Memory:
    return Memory(
        key=message.key,
        content=message.content,
        tags=tuple(message.tags),
        classification=Classification(message.classification),
        etag=message.etag,
        create_time=_convert.utc(message.create_time),
        update_time=_convert.utc(message.update_time),
        expire_time=_convert.utc(message.expire_time) if message.HasField("expire_time") else None,
        newer_below=_convert.newer_below(message),
        integrity=_convert.integrity(message.integrity),
    )


def _memory_page(message: pb.ListMemoriesResponse) -> MemoryPage:
    return MemoryPage(
        memories=tuple(map(_memory, message.memories)),
        next_page_token=message.next_page_token,
        classification=Classification(message.classification),
        integrity=_convert.integrity(message.integrity),
    )


def _search_results(message: pb.SearchMemoriesResponse) -> SearchResults:
    return SearchResults(
        results=tuple(map(_memory_result, message.results)),
        classification=Classification(message.classification),
        semantic=message.semantic,
        reranked=message.reranked,
        integrity=_convert.integrity(message.integrity),
    )


def _memory_result(message: pb.MemoryResult) -> MemoryResult:
    return MemoryResult(
        memory=_memory(message.memory), score=message.score, snippet=message.snippet, relevance=message.relevance
    )
