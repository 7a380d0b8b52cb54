"""How a stream of passages is divided into transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment_server.domain.errors import MunimentError
from muniment_server.items.item_store import NewPassage

_BATCH_PASSAGES = 100
_BATCH_BYTES = 256 * 1024
"""The content of one batch, give or take a passage. A RaiseTaint of the session waits until a batch is indexed."""


class Batch(NamedTuple):
    """Passages of one transaction."""

    passages: Sequence[NewPassage]
    more_follow: bool
    """Whether there is another batch of the same stream."""


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


def _has_id(batch: list[NewPassage], passage_id: str) -> bool:
    return bool(passage_id) and any(passage_id == other.passage_id for other in batch)
