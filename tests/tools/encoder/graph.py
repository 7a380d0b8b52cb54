"""A graph of operators for ONNX Runtime, in ONNX's protobuf messages. Numbers of fields are those of its onnx.proto."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

RUNTIME = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
_VERSION, _OPERATORS = 10, {"": 20, RUNTIME: 1}
"""Of the format, and of the operators of each domain."""
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}


class Graph:
    """Operators that compute one tensor of floats from another."""

    def __init__(self, input_: str) -> None:
        self._input = input_
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, value: npt.NDArray[Any]) -> str:
        """The name of a tensor of this *value*."""
        name = f"c{len(self._constants)}"
        self._constants.append(_tensor(name, value.dtype, value.shape, _field(9, value.tobytes())))
        return name

    def weights(self, name: str, kind: type[np.generic], *shape: int) -> str:
        """*name*, that of a tensor which is not part of the graph."""
        elsewhere = _field(13, _field(1, "location") + _field(2, "elsewhere")) + _field(14, 1)
        self._constants.append(_tensor(name, np.dtype(kind), shape, elsewhere))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: int | float | Sequence[int]) -> str:
        """The name of what *operator* makes of *inputs*."""
        name = f"n{len(self._nodes)}"
        fields = [
            *(_field(1, each) for each in inputs), _field(2, name), _field(4, operator),
            *(_field(5, _attribute(*each)) for each in attributes.items()), _field(7, domain),
        ]  # fmt: skip
        self._nodes.append(_field(1, b"".join(fields)))
        return name

    def written(self, output: str) -> bytes:
        """The graph, with *output* as its result."""
        ends = _field(11, _floats(self._input)) + _field(12, _floats(output))
        graph = b"".join([*self._nodes, _field(2, "graph"), *self._constants, ends])
        domains = [_field(8, _field(1, domain) + _field(2, version)) for domain, version in _OPERATORS.items()]
        return b"".join([_field(1, _VERSION), _field(7, graph), *domains])


def _tensor(name: str, kind: np.dtype[Any], shape: Sequence[int], value: bytes) -> bytes:
    return _field(
        5, b"".join(_field(1, size) for size in shape) + _field(2, _TYPES[kind.name]) + _field(8, name) + value
    )


def _floats(name: str) -> bytes:
    return _field(1, name) + _field(2, _field(1, _field(1, _TYPES["float32"])))


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, 1)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + b"".join(_field(8, each) for each in value) + _field(20, 7)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    written = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(written)) + written


def _varint(value: int) -> bytes:
    value %= 1 << 64
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])
