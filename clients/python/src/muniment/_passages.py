"""Calls for passages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Literal

from muniment import _convert
from muniment._calls import Calls
from muniment._listing import Listing
from muniment.v1 import passage_pb2
from muniment.v1 import passage_service_pb2 as pb
from muniment.v1.passage_service_pb2_grpc import PassageServiceStub
from muniment.values import (
    Classification,
    DeletedCount,
    ImportCounts,
    NewPassage,
    Passage,
    PassagePage,
    PassageResult,
    PassageSearchResults,
)


class Passages:
    """Archival passages, as one session sees them. Passages are written once."""

    _calls: Calls

    @cached_property
    def _passages(self) -> PassageServiceStub:
        return PassageServiceStub(self._calls.channel)

    def store_passage(
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
        return _passage(self._calls(self._passages.StorePassage, request, timeout).passage)

    def import_passages(
        self, passages: Iterable[NewPassage], *, validate_only: bool = False, timeout: float | None = None
    ) -> ImportCounts:
        """Store a stream of passages in order, all at one taint. The server commits them in batches.

        *passages* is read in the caller's thread, as fast as they are sent. An exception that it raises ends the
        import and reaches the caller. *timeout* is for the whole stream, which must not pause for 10 seconds.

        Never retried. Every error of the server has `progress`: how many passages, from the first, are stored. If
        each has an id, it is safe to import all of them again.

        With *validate_only*, the server only checks the fields, and counts as stored what it would accept.
        """
        requests = (
            _convert.message(pb.ImportPassagesRequest, passage=_passage_to_proto(each), validate_only=validate_only)
            for each in passages
        )
        response = self._calls.stream(self._passages.ImportPassages, requests, timeout)
        return ImportCounts(response.stored_count, response.existing_count)

    def get_passage(self, passage_id: str, *, timeout: float | None = None) -> Passage:
        """One passage. PassageNotFound: it is not visible."""
        request = _convert.message(pb.GetPassageRequest, passage_id=passage_id)
        return _passage(self._calls(self._passages.GetPassage, request, timeout).passage)

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

    def list_passages_page(
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
        return _page(self._calls(self._passages.ListPassages, request, timeout))

    def search_passages(
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
        return _search_results(self._calls(self._passages.SearchPassages, request, timeout))

    def delete_passage(self, passage_id: str, *, timeout: float | None = None) -> Classification | None:
        """Delete a passage of the session's own level; return the level of the one that is now visible, if any.

        WriteLevelMismatch: only a lower one is visible. PassageNotFound: none is.
        """
        request = _convert.message(pb.DeletePassageRequest, passage_id=passage_id)
        return _convert.revealed(self._calls(self._passages.DeletePassage, request, timeout))

    def delete_passages(
        self, *, tag: str | None = None, thread: str | None = None, timeout: float | None = None
    ) -> DeletedCount:
        """Delete the passages of the session's own level with a *tag*, of a *thread*, or with both.

        At most 1,000 a call, and fewer of long ones.
        """
        request = _convert.message(pb.DeletePassagesRequest, tag=tag or "", thread=thread or "")
        response = self._calls(self._passages.DeletePassages, request, timeout)
        return DeletedCount(response.deleted_count, response.more)


def _passage_to_proto(passage: NewPassage) -> pb.StorePassageRequest:
    if not isinstance(passage, NewPassage):
        raise TypeError("a passage to import must be a NewPassage")
    return _convert.message(
        pb.StorePassageRequest,
        content=passage.content,
        tags=_convert.tags_to_proto(passage.tags),
        thread=passage.thread or "",
        author=passage.author or "",
        event_time=_convert.time_to_proto(passage.event_time),
        passage_id=passage.passage_id or "",
        expire_time=_convert.time_to_proto(passage.expire_time),
    )


def _passage(message: passage_pb2.Passage) -> Passage:
    return Passage(
        passage_id=message.passage_id,
        content=message.content,
        tags=tuple(message.tags),
        thread=message.thread or None,
        author=message.author or None,
        event_time=_convert.utc(message.event_time),
        classification=Classification(message.classification),
        create_time=_convert.utc(message.create_time),
        expire_time=_convert.utc(message.expire_time) if message.HasField("expire_time") else None,
        newer_below=_convert.newer_below(message),
        integrity=_convert.integrity(message.integrity),
    )


def _page(message: pb.ListPassagesResponse) -> PassagePage:
    return PassagePage(
        passages=tuple(map(_passage, message.passages)),
        next_page_token=message.next_page_token,
        classification=Classification(message.classification),
        integrity=_convert.integrity(message.integrity),
    )


def _search_results(message: pb.SearchPassagesResponse) -> PassageSearchResults:
    return PassageSearchResults(
        results=tuple(map(_result, message.results)),
        classification=Classification(message.classification),
        semantic=message.semantic,
        reranked=message.reranked,
        integrity=_convert.integrity(message.integrity),
    )


def _result(message: pb.PassageResult) -> PassageResult:
    return PassageResult(
        passage=_passage(message.passage), score=message.score, snippet=message.snippet, relevance=message.relevance
    )
