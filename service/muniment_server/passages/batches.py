"""How a stream of passages is divided into transactions, each prepared while the one before it is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from muniment_server.domain.errors import MunimentError
from muniment_server.items import item_store
from muniment_server.items.item_store import IndexedPassage, NewPassage

_BATCH_PASSAGES = 100
_BATCH_BYTES = 256 * 1024
"""The content of one batch, give or take a passage. A RaiseTaint of the session waits until a batch is indexed."""
_T = TypeVar("_T")


class Batch(NamedTuple):
    """Passages of one transaction."""

    passages: Sequence[NewPassage]
    more_follow: bool
    """Whether there is another batch of the same stream."""


class IndexedBatch(NamedTuple):
    """A batch whose passages are ready to be stored."""

    passages: Sequence[IndexedPassage]
    more_follow: bool


def indexed(batch: Batch) -> IndexedBatch:
    """Make the index entries of a batch."""
    return IndexedBatch([item_store.indexed(passage) for passage in batch.passages], batch.more_follow)


def batches(passages: Iterator[NewPassage]) -> Iterator[Batch]:
    """Batches with different ids. If *passages* raises, the passages before the fault are yielded first."""
    batch: list[NewPassage] = []
    size = 0
    try:
        for passage in passages:
            if len(batch) == _BATCH_PASSAGES or size >= _BATCH_BYTES or _has_id(batch, passage.passage_id):
                yield Batch(batch, more_follow=True)
                batch, size = [], 0
            batch.append(passage)
            size += len(passage.content.encode())
    except MunimentError:
        if batch:
            yield Batch(batch, more_follow=False)
        raise
    if batch:
        yield Batch(batch, more_follow=False)


def one_ahead(items: Iterator[_T]) -> Iterator[_T]:
    """The items of *items*. A thread makes each while the caller uses the one before it."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead")
    try:
        following = executor.submit(next, items, None)
        while (item := following.result()) is not None:
            following = executor.submit(next, items, None)
            yield item
    finally:
        executor.shutdown(wait=False)  # the thread may wait for a message, until the call ends


def _has_id(batch: list[NewPassage], passage_id: str) -> bool:
    return bool(passage_id) and any(passage_id == other.passage_id for other in batch)
