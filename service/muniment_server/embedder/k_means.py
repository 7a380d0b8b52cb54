"""Computes the centers of lists of embeddings from signs: k-means by Hamming distance. Part of the embedder.

Signs are strings of bits, as Postgres writes them. The same signs, in whatever order, have the same centers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

SAMPLE_OF_LIST = 24
"""From how many embeddings a center is computed, on average."""
_ROUNDS = 6
_BLOCK = 128
"""How many embeddings are compared with all centers at once: the distances stay in the processor's cache."""


class Nearest:
    """Finds the nearest of some centers."""

    def __init__(self, centers: Sequence[str]) -> None:
        self._centers = _rows(centers)

    def of(self, signs: Sequence[str]) -> list[int]:
        """For each embedding, the index of the nearest center: the first if several are equally near."""
        found: list[int] = _nearest(_rows(signs), self._centers).tolist()
        return found


def k_means(signs: Sequence[str], count: int) -> list[str]:
    """The *count* centers of a sample of embeddings; fewer if there are fewer embeddings."""
    sample = _rows(sorted(signs))
    centers = sample[np.random.default_rng(count).permutation(len(sample))[:count]]
    for _ in range(_ROUNDS):
        nearest = _nearest(sample, centers)
        order = np.argsort(nearest, kind="stable")
        numbers, begins = np.unique(nearest[order], return_index=True)
        for number, group in zip(numbers, np.split(sample[order], begins[1:]), strict=True):
            centers[number] = _majority(group)
    return [_bits(row) for row in centers]


def center(signs: Sequence[str]) -> str:
    """For each component, the sign that most embeddings have."""
    return _bits(_majority(_rows(signs)))


def _rows(signs: Sequence[str]) -> Any:
    """A row of 64-bit words for each embedding."""
    bits = np.frombuffer("".join(signs).encode(), dtype=np.uint8).reshape(len(signs), -1) == ord("1")
    return np.packbits(bits, axis=1).view(np.uint64)


def _bits(row: Any) -> str:
    return "".join(map(str, np.unpackbits(row.view(np.uint8)).tolist()))


def _majority(rows: Any) -> Any:
    bits = np.unpackbits(rows.view(np.uint8), axis=1)
    return np.packbits(2 * bits.sum(axis=0, dtype=np.int64) > len(rows)).view(np.uint64)


def _nearest(rows: Any, centers: Any) -> Any:
    """The index of the center that is nearest to each row."""
    return np.concatenate([_nearest_of_block(rows[at : at + _BLOCK], centers) for at in range(0, len(rows), _BLOCK)])


def _nearest_of_block(rows: Any, centers: Any) -> Any:
    distances = np.zeros((len(rows), len(centers)), dtype=np.uint16)
    for word in range(rows.shape[1]):
        distances += np.bitwise_count(rows[:, word, None] ^ centers[None, :, word])
    return distances.argmin(axis=1)
