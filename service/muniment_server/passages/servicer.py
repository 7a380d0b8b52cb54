"""PassageService."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from muniment.v1 import passage_service_pb2 as pb
from muniment.v1 import passage_service_pb2_grpc, tag_match_pb2
from muniment_server.domain import text
from muniment_server.domain.errors import ImportProgress, MunimentError, StaleSession, TaintChanged
from muniment_server.domain.records import ItemFilter, NewPassage, Passage
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store
from muniment_server.passages import repository

_BATCH = 100
"""Passages stored in one transaction."""
_BATCH_BYTES = 1024 * 1024
"""Content stored in one transaction, give or take a passage."""


class PassageServicer(passage_service_pb2_grpc.PassageServiceServicer):
    """Passages, as one session sees them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def StorePassage(self, request: pb.StorePassageRequest, context: CallContext) -> pb.StorePassageResponse:
        given = _new_passage(request)
        with self._store.as_session(context.session, context.call) as view:
            passage = view.passages.store(given)
        return pb.StorePassageResponse(passage=convert.passage_to_proto(passage))

    def ImportPassages(
        self, requests: Iterator[pb.ImportPassagesRequest], context: CallContext
    ) -> pb.ImportPassagesResponse:
        with self._store.as_session(context.session, context.call) as view:
            view.session()  # the last look at the taint: from here on the stream is stored at it, or not at all
        progress = ImportProgress()
        try:
            for batch in _batches(_new_passage(request.passage, within="passage.") for request in requests):
                with self._store.as_session(context.session, context.call) as view:
                    progress = view.passages.store_batch(batch, progress)
        except StaleSession:
            raise _told(TaintChanged(), progress) from None
        except MunimentError as error:
            raise _told(error, progress) from None
        return pb.ImportPassagesResponse(stored_count=progress.stored_count, existing_count=progress.existing_count)

    def GetPassage(self, request: pb.GetPassageRequest, context: CallContext) -> pb.GetPassageResponse:
        with self._store.as_session(context.session, context.call) as view:
            passage = view.passages.get(convert.id_from_proto(request.passage_id))
        return pb.GetPassageResponse(passage=convert.passage_to_proto(passage))

    def ListPassages(self, request: pb.ListPassagesRequest, context: CallContext) -> pb.ListPassagesResponse:
        wanted = _filter(request)
        pager = context.pager(wanted.tags, wanted.any_tag, wanted.thread, str(wanted.start_time), str(wanted.end_time))
        with self._store.as_session(context.session, context.call) as view:
            found, more = view.passages.list(
                wanted,
                before=_place(pager.last(request.page_token)),
                limit=paging.page_size(request.page_size),
            )
        return pb.ListPassagesResponse(
            passages=map(convert.passage_to_proto, found),
            next_page_token=pager.token(*_position(found[-1])) if more else "",
            classification=convert.join(passage.classification for passage in found),
        )

    def SearchPassages(self, request: pb.SearchPassagesRequest, context: CallContext) -> pb.SearchPassagesResponse:
        query = text.query(request.query)
        wanted = _filter(request)
        limit = paging.max_results(request.max_results)
        with self._store.as_session(context.session, context.call) as view:
            results, semantic = view.passages.search(query, wanted, limit=limit)
        return pb.SearchPassagesResponse(
            results=map(convert.passage_result_to_proto, results),
            classification=convert.join(result.passage.classification for result in results),
            semantic=semantic,
        )

    def DeletePassage(self, request: pb.DeletePassageRequest, context: CallContext) -> pb.DeletePassageResponse:
        with self._store.as_session(context.session, context.call) as view:
            revealed = view.passages.delete(convert.id_from_proto(request.passage_id))
        return pb.DeletePassageResponse(revealed=convert.level_to_proto(revealed))


def _new_passage(request: pb.StorePassageRequest, *, within: str = "") -> NewPassage:
    """The passage to store. Its fields are told as fields *within* another message."""
    return NewPassage(
        passage_id=convert.id_from_proto(request.passage_id),
        content=text.content(request.content, field=f"{within}content"),
        tags=tuple(text.tags(request.tags, field=f"{within}tags")),
        thread=text.key(request.thread, field=f"{within}thread") if request.thread else None,
        author=text.plain(request.author, field=f"{within}author") or None,
        event_time=convert.optional_time_from_proto(request, "event_time", within=within),
        expire_time=convert.optional_time_from_proto(request, "expire_time", within=within),
    )


def _filter(request: pb.ListPassagesRequest | pb.SearchPassagesRequest) -> ItemFilter:
    return ItemFilter(
        tags=tuple(text.tags(request.tags)),
        any_tag=request.tag_match == tag_match_pb2.TAG_MATCH_ANY,
        thread=text.key(request.thread, field="thread") if request.thread else None,
        start_time=convert.optional_time_from_proto(request, "start_time"),
        end_time=convert.optional_time_from_proto(request, "end_time"),
    )


def _batches(given: Iterator[NewPassage]) -> Iterator[list[NewPassage]]:
    """What to store at once. No id is twice in a batch. What came before a fault comes before it here, too."""
    batch: list[NewPassage] = []
    size = 0
    try:
        for passage in given:
            if len(batch) == _BATCH or size >= _BATCH_BYTES or _is_in(batch, passage):
                yield batch
                batch, size = [], 0
            batch.append(passage)
            size += len(passage.content.encode())
    except MunimentError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _is_in(batch: list[NewPassage], passage: NewPassage) -> bool:
    return bool(passage.passage_id) and any(passage.passage_id == stored.passage_id for stored in batch)


def _told(error: MunimentError, progress: ImportProgress) -> MunimentError:
    """*error*, which tells how far the stream came."""
    error.progress = error.progress or progress
    return error


def _place(last: list[str] | None) -> repository.Place:
    """Where a list goes on, after the passage that a page token names."""
    if last is None:
        return repository.NEWEST
    return datetime.fromisoformat(last[0]), datetime.fromisoformat(last[1]), last[2]


def _position(passage: Passage) -> tuple[str, str, str]:
    return passage.event_time.isoformat(), passage.create_time.isoformat(), passage.passage_id
