"""Divides memories into batches that `save_memories` takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

MAX_MEMORIES = 100
MAX_BYTES = 128 * 1024
"""The size limit of the content in one request. A larger memory is a batch by itself."""
_OVERHEAD_BYTES = 64


class _Sized(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def tags(self) -> Sequence[str]: ...


_M = TypeVar("_M", bound=_Sized)


def batches(memories: Iterable[_M]) -> Iterator[list[_M]]:
    """Divide *memories*, in their order, into as few batches as possible."""
    batch: list[_M] = []
    size = 0
    for memory in memories:
        own_size = _size(memory)
        if batch and (len(batch) == MAX_MEMORIES or size + own_size > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(memory)
        size += own_size
    if batch:
        yield batch


def _size(memory: _Sized) -> int:
    """The size in a request, at most. Surrogates, which the server refuses, count like other characters."""
    texts = (memory.key, memory.content, *memory.tags)
    return sum(len(text.encode("utf-8", "surrogatepass")) + 8 for text in texts) + _OVERHEAD_BYTES
