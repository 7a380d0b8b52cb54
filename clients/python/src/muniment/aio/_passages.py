# Generated from ../_passages.py: make aio.
"""Calls for passages."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from muniment import _convert
from muniment._passages import _page, _passage, _passage_to_proto, _search_results
from muniment.aio._calls import Calls, each_of
from muniment.aio._listing import Listing
from muniment.v1 import passage_service_pb2 as pb
from muniment.v1.passage_service_pb2_grpc import PassageServiceStub
from muniment.values import (
    Classification,
    DeletedCount,
    ImportCounts,
    NewPassage,
    Passage,
    PassagePage,
    PassageSearchResults,
)

if TYPE_CHECKING:
    from muniment.v1.passage_service_pb2_grpc import PassageServiceAsyncStub


class Passages:
    """Archival passages, as one session sees them. Passages are written once."""

    _calls: Calls

    @cached_property
    def _passages(self) -> PassageServiceAsyncStub:
        return PassageServiceStub(self._calls.channel)

    async def store_passage(
        self,
        content: str,
        *,
        tags: Iterable[str] = (),
        thread: str | None = None,
        author: str | None = None,
        event_time: datetime | None = None,
        passage_id: str | None = None,
        expire_time: datetime | None = None,
        timeout: float | None = None,
    ) -> Passage:
        """Store a passage at the session's own level.

        *content* is 1 byte to 256 KiB, *tags* up to 32 of up to 64 code points, *thread* and *author* up to
        256 code points. An *event_time* of None is now. *passage_id* is a UUID; None: a new one.
        PassageExists: a passage with other content has that id.
        """
        request = _passage_to_proto(
            NewPassage(
                content=content,
                tags=tags,
                thread=thread,
                author=author,
                event_time=event_time,
                passage_id=_convert.id_to_proto(passage_id),
                expire_time=expire_time,
            )
        )
        return _passage((await self._calls(self._passages.StorePassage, request, timeout)).passage)

    async def import_passages(
        self,
        passages: AsyncIterable[NewPassage] | Iterable[NewPassage],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> ImportCounts:
        """Store a stream of passages in order, all at one taint. The server commits them in batches.

        *passages* is read as fast as they are sent. An exception that it raises ends the
        import and reaches the caller. *timeout* is for the whole stream, which must not pause for 10 seconds.

        Never retried. Every error of the server has `progress`: how many passages, from the first, are stored. If
        each has an id, it is safe to import all of them again.

        With *validate_only*, the server only checks the fields, and counts as stored what it would accept.
        """
        requests = (
            _convert.message(pb.ImportPassagesRequest, passage=_passage_to_proto(each), validate_only=validate_only)
            async for each in each_of(passages)
        )
        response = await self._calls.stream(self._passages.ImportPassages, requests, timeout)
        return ImportCounts(response.stored_count, response.existing_count)

    async def get_passage(self, passage_id: str, *, timeout: float | None = None) -> Passage:
        """One passage. PassageNotFound: it is not visible."""
        request = _convert.message(pb.GetPassageRequest, passage_id=passage_id)
        return _passage((await self._calls(self._passages.GetPassage, request, timeout)).passage)

    def list_passages(
        self,
        *,
        tags: Iterable[str] = (),
        tag_match: Literal["all", "any"] = "all",
        thread: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Listing[Passage]:
        """The visible passages by event time, newest first; pages are fetched as needed.

        Filters are *thread*, *tags*, and `start_time <= event_time < end_time`. *timeout* is for each
        page. TaintChanged: the taint was raised between two pages; see `Listing.all`.
        """
        of_all_pages = tuple(_convert.tags_to_proto(tags))
        return Listing(
            lambda token: self.list_passages_page(
                tags=of_all_pages,
                tag_match=tag_match,
                thread=thread,
                start_time=start_time,
                end_time=end_time,
                page_size=page_size,
                page_token=token,
                timeout=timeout,
            ),
            lambda page: page.passages,
        )

    async def list_passages_page(
        self,
        *,
        tags: Iterable[str] = (),
        tag_match: Literal["all", "any"] = "all",
        thread: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> PassagePage:
        """One page, and the highest level in it. A *page_size* of 0 means 50; the most is 250."""
        request = _convert.message(
            pb.ListPassagesRequest,
            tags=_convert.tags_to_proto(tags),
            tag_match=_convert.tag_match_to_proto(tag_match),
            thread=thread or "",
            start_time=_convert.time_to_proto(start_time),
            end_time=_convert.time_to_proto(end_time),
            page_size=page_size,
            page_token=page_token,
        )
        return _page(await self._calls(self._passages.ListPassages, request, timeout))

    async def search_passages(
        self,
        query: str,
        *,
        max_results: int = 0,
        min_relevance: float = 0,
        tags: Iterable[str] = (),
        tag_match: Literal["all", "any"] = "all",
        thread: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        timeout: float | None = None,
    ) -> PassageSearchResults:
        """The passages that match a query in plain language, best first. The filters are those of `list_passages`.

        *query* is 1 to 1024 code points; it has no syntax. A *max_results* of 0 means 10; the most
        is 100. Results whose relevance is below *min_relevance*, from 0 to 1, are left out.
        """
        request = _convert.message(
            pb.SearchPassagesRequest,
            query=query,
            max_results=max_results,
            min_relevance=min_relevance,
            tags=_convert.tags_to_proto(tags),
            tag_match=_convert.tag_match_to_proto(tag_match),
            thread=thread or "",
            start_time=_convert.time_to_proto(start_time),
            end_time=_convert.time_to_proto(end_time),
        )
        return _search_results(await self._calls(self._passages.SearchPassages, request, timeout))

    async def delete_passage(self, passage_id: str, *, timeout: float | None = None) -> Classification | None:
        """Delete a passage of the session's own level; return the level of the one that is now visible, if any.

        WriteLevelMismatch: only a lower one is visible. PassageNotFound: none is.
        """
        request = _convert.message(pb.DeletePassageRequest, passage_id=passage_id)
        return _convert.revealed(await self._calls(self._passages.DeletePassage, request, timeout))

    async def delete_passages(
        self, *, tag: str | None = None, thread: str | None = None, timeout: float | None = None
    ) -> DeletedCount:
        """Delete the passages of the session's own level with a *tag*, of a *thread*, or with both.

        At most 1,000 a call, and fewer of long ones.
        """
        request = _convert.message(pb.DeletePassagesRequest, tag=tag or "", thread=thread or "")
        response = await self._calls(self._passages.DeletePassages, request, timeout)
        return DeletedCount(response.deleted_count, response.more)
