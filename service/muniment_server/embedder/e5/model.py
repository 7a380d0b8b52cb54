"""The model. The only module that loads ONNX Runtime."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession, OrtValue, SessionOptions

from muniment_server.embedder.e5.tokenizer import Tokenizer
from muniment_server.embedder.e5.weights import Weights
from muniment_server.search.embeddings import Vector, readable, vector_of

GRAPH, INPUT = Path(__file__).with_name("encoder.onnx"), "x"
"""The graph that the runtime computes, without weights, and the name of its input. `make encoder` writes it."""
_QUERY_TOKENS, _CHUNK_TOKENS = 90, 250
"""The most tokens of a text that are embedded. They take 30 ms (query) and 75 ms (chunk) of one core."""
_ERRORS = 3
"""The log level of ONNX Runtime at which it reports errors only."""


class Model:
    """The model. Safe to use from several threads. Keeps nothing of a text."""

    def __init__(self) -> None:
        self._weights = Weights()
        self._tokenizer = Tokenizer(self._weights.vocabulary(), self._weights.unknown)
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS
        options.enable_mem_pattern = False  # it would keep a plan for each length of a text
        self._parameters = {name: OrtValue.ortvalue_from_numpy(value) for name, value in self._weights.parameters()}
        options.add_external_initializers(list(self._parameters), list(self._parameters.values()))
        self._session = InferenceSession(GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"])
        self._weights.unload()
        self._started: dict[int, float] = {}
        """When each thread that computes an embedding has begun."""

    def embed_query(self, text: str) -> Vector:
        """The embedding of the beginning of a query."""
        return self._embed("query:", self._tokenizer.tokens(readable(text))[:_QUERY_TOKENS])

    def embed_chunk(self, text: str) -> Vector:
        """The embedding of the end of a chunk. A turn is embedded after the one before it, so its end matters most."""
        return self._embed("passage:", self._tokenizer.tokens(readable(text))[-_CHUNK_TOKENS:])

    def is_stuck(self, seconds: float) -> bool:
        """Whether an embedding has taken longer than *seconds*."""
        return any(time.monotonic() - started > seconds for started in list(self._started.values()))

    def _embed(self, prefix: str, tokens: list[int]) -> Vector:
        marked = [self._weights.first, *self._tokenizer.tokens(prefix), *tokens, self._weights.last]
        self._started[threading.get_ident()] = time.monotonic()
        try:
            (mean,) = self._session.run(None, {INPUT: self._weights.input(marked)[None]})
        finally:
            del self._started[threading.get_ident()]
        return vector_of((mean / np.linalg.norm(mean)).tolist())
