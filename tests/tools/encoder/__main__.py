"""`make encoder`: BERT's encoder as a graph without weights, which the embedder reads.

Its matrices are products of integers: of seven bits, times eight bits of each token.
"""

from __future__ import annotations

import click
import numpy as np

from muniment_server.embedder.e5.model import GRAPH, INPUT
from tests.tools.encoder.graph import RUNTIME, Graph

_LAYERS, _WIDTH, _INNER, _HEADS = 12, 384, 1536, 12
_EPSILON = 1e-12
_LARGEST = 127


@click.command
def main() -> None:
    """Write the graph where the embedder reads it."""
    GRAPH.write_bytes(encoder())


def encoder() -> bytes:
    """A graph that makes the mean of the last layer from the input of the first."""
    graph = _Encoder()
    states = graph.normalized(INPUT, "emb.ln")
    for layer in range(_LAYERS):
        states = graph.layer(states, f"l{layer}.")
    return graph.written(graph.node("ReduceMean", states, graph.constant(np.array([0, 1])), keepdims=0))


class _Encoder(Graph):
    def __init__(self) -> None:
        super().__init__(INPUT)
        self._one, self._zero = self.constant(np.ones(1, np.float32)), self.constant(np.full(1, _LARGEST + 1, np.uint8))
        self._largest, self._last = self.constant(np.full(1, _LARGEST, np.float32)), self.constant(np.array([-1]))
        self._by_head = self.constant(np.array([0, -1, _HEADS, _WIDTH // _HEADS]))
        self._together = self.constant(np.array([0, -1, _WIDTH]))

    def layer(self, states: str, name: str) -> str:
        """A layer: attention, then two matrices, with what each adds to its input."""
        attended = self._linear(self._attention(states, name), f"{name}ao", _WIDTH, _WIDTH)
        states = self.normalized(self.node("Add", states, attended), f"{name}aln")
        inner = self.node("Gelu", self._linear(states, f"{name}fi", _WIDTH, _INNER))
        return self.normalized(self.node("Add", states, self._linear(inner, f"{name}fo", _INNER, _WIDTH)), f"{name}oln")

    def normalized(self, states: str, name: str) -> str:
        """Normalized over each token."""
        scale, bias = (self.weights(f"{name}.{each}", np.float32, _WIDTH) for each in "wb")
        return self.node("LayerNormalization", states, scale, bias, epsilon=_EPSILON)

    def _linear(self, states: str, name: str, width: int, wanted: int) -> str:
        """*states* times a matrix, plus its bias."""
        step = self.node("Div", self.node("ReduceMax", self.node("Abs", states), self._last), self._largest)
        rounded = self.node("QuantizeLinear", self.node("Div", states, step), self._one, self._zero)
        whole = self.weights(f"{name}.w", np.int8, width, wanted)
        steps, bias = (self.weights(f"{name}.{each}", np.float32, wanted) for each in ("steps", "b"))
        product = self.node("MatMulIntegerToFloat", rounded, whole, self._one, steps, self._zero, domain=RUNTIME)
        return self.node("Add", self.node("Mul", product, step), bias)

    def _attention(self, states: str, name: str) -> str:
        parts = (
            self.node("Reshape", self._linear(states, name + each, _WIDTH, _WIDTH), self._by_head) for each in "qkv"
        )
        queries, keys, values = (self.node("Transpose", each, perm=[0, 2, 1, 3]) for each in parts)
        scale = (_WIDTH / _HEADS) ** -0.5
        products = self.node("FusedMatMul", queries, keys, domain=RUNTIME, transB=1, alpha=scale)
        mixed = self.node("MatMul", self.node("Softmax", products, axis=-1), values)
        return self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self._together)


if __name__ == "__main__":
    main()
