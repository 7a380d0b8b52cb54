"""PassageService."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from muniment.v1 import passage_service_pb2 as pb
from muniment.v1 import passage_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.errors import MunimentError, StaleSession, TaintChanged
from muniment_server.domain.items import ItemKind
from muniment_server.items import item_store, paging
from muniment_server.items.checking import check_session
from muniment_server.items.deleting import delete_all
from muniment_server.items.wire import id_from_proto, joined, revealed_to_proto
from muniment_server.monitor.call import CallContext
from muniment_server.passages import repository, wire
from muniment_server.passages.batches import Batch, IndexedBatch, batches, indexed, one_ahead
from muniment_server.passages.repository import ImportProgress, ImportRefused
from muniment_server.search.search import Searcher


class PassageServicer(passage_service_pb2_grpc.PassageServiceServicer):
    """Passages, as one session sees them."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def StorePassage(self, request: pb.StorePassageRequest, context: CallContext) -> pb.StorePassageResponse:
        new = wire.new_passage(request)
        with context.session_scope() as scope:
            passage = repository.store(scope, new)
        return pb.StorePassageResponse(passage=wire.passage_to_proto(passage))

    def ImportPassages(
        self, requests: Iterator[pb.ImportPassagesRequest], context: CallContext
    ) -> pb.ImportPassagesResponse:
        check_session(context)  # the stream is stored at the current taint, or not at all
        progress = ImportProgress()
        try:
            for validate_only, group in groupby(requests, key=lambda request: request.validate_only):
                found = batches(wire.new_passage(request.passage, within="passage.") for request in group)
                if validate_only:
                    for batch in found:
                        progress = _check(context, batch, progress)
                else:
                    for indexed_batch in one_ahead(map(indexed, found)):
                        progress = _store(context, indexed_batch, progress)
        except StaleSession:
            raise _with_progress(TaintChanged(), progress) from None
        except ImportRefused as refused:
            raise _with_progress(refused.refusal, refused.progress) from None
        except MunimentError as error:
            raise _with_progress(error, progress) from None
        return pb.ImportPassagesResponse(stored_count=progress.stored_count, existing_count=progress.existing_count)

    def GetPassage(self, request: pb.GetPassageRequest, context: CallContext) -> pb.GetPassageResponse:
        with context.session_scope() as scope:
            passage = item_store.get(scope, ItemKind.PASSAGE, id_from_proto(request.passage_id))
        return pb.GetPassageResponse(passage=wire.passage_to_proto(passage))

    def ListPassages(self, request: pb.ListPassagesRequest, context: CallContext) -> pb.ListPassagesResponse:
        wanted = wire.filter_from_proto(request)
        pager = context.pager(wanted.tags, wanted.any_tag, wanted.thread, str(wanted.start_time), str(wanted.end_time))
        before = wire.position_from(pager.last(request.page_token))
        limit = paging.page_size(request.page_size)
        with context.session_scope() as scope:
            passages, more = repository.list_passages(scope, wanted, before=before, limit=limit)
        return pb.ListPassagesResponse(
            passages=map(wire.passage_to_proto, passages),
            next_page_token=pager.token(*wire.position_of(passages[-1])) if more else "",
            classification=joined(passage.label for passage in passages),
        )

    def SearchPassages(self, request: pb.SearchPassagesRequest, context: CallContext) -> pb.SearchPassagesResponse:
        query = text.query(request.query)
        wanted = wire.filter_from_proto(request)
        limit = paging.max_results(request.max_results)
        with context.session_scope() as scope:
            found = self._searcher.search(
                scope, ItemKind.PASSAGE, query, limit=limit, min_relevance=request.min_relevance, wanted=wanted
            )
        return pb.SearchPassagesResponse(
            results=map(wire.result_to_proto, found.matches),
            classification=joined(match.item.label for match in found.matches),
            semantic=found.semantic,
            reranked=found.reranked,
        )

    def DeletePassage(self, request: pb.DeletePassageRequest, context: CallContext) -> pb.DeletePassageResponse:
        with context.session_scope() as scope:
            revealed = item_store.delete(scope, ItemKind.PASSAGE, id_from_proto(request.passage_id), etag=None)
        return pb.DeletePassageResponse(**revealed_to_proto(revealed))

    def DeletePassages(self, request: pb.DeletePassagesRequest, context: CallContext) -> pb.DeletePassagesResponse:
        tag, thread = wire.selection_from_proto(request)
        with context.session_scope() as scope:
            deleted_count, more = delete_all(scope, ItemKind.PASSAGE, tag=tag, thread=thread)
        return pb.DeletePassagesResponse(deleted_count=deleted_count, more=more)


def _check(context: CallContext, batch: Batch, progress: ImportProgress) -> ImportProgress:
    check_session(context)
    return progress.after(["OK"] * len(batch.passages))


def _store(context: CallContext, batch: IndexedBatch, progress: ImportProgress) -> ImportProgress:
    with context.session_scope() as scope:
        return repository.store_batch(scope, batch, progress)


def _with_progress(error: MunimentError, progress: ImportProgress) -> MunimentError:
    """*error*, which tells the caller how far its stream came."""
    error.detail = wire.progress_to_proto(progress)
    return error
