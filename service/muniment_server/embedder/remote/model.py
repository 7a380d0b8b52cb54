"""A model at an address: asks a server for embeddings, over the interface `/v1/embeddings` that OpenAI introduced."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from muniment_server.domain.classification import Label
from muniment_server.embedder.remote.client import (
    AboveCeilingError,
    ModelClient,
    ProbeFailedError,
    RemoteModelError,
    fail,
)
from muniment_server.embedder.remote.configuration import MAX_DIMENSIONS, RemoteConfig
from muniment_server.embedder.remote.everyday_sentences import SENTENCES
from muniment_server.search.embeddings import Vector, model_number, readable, vector_of
from muniment_server.telemetry import embedder_metrics as metrics

_CHUNKS_SECONDS = 30.0
"""How long an answer for a batch of chunks may take."""
_SENTENCES_AT_ONCE = 4
"""Few, because a model on a busy processor may take a second for each sentence."""
_MAX_COMPONENT = 1e6
_SHORTEST = 1e-9
"""The length of the shortest vector, after the mean is subtracted, that has a direction."""
_MAX_BYTES = 64 * 1024
_MAX_BYTES_OF_COMPONENT = 32
"""The limit of an answer: so many bytes, and so many for each component of each vector."""


@dataclass(frozen=True, slots=True)
class _Calibration:
    """What the embeddings of everyday sentences show of a model."""

    number: int
    dimensions: int
    """How many an answer has."""
    mean: Sequence[float]
    """Of the components that are kept."""


class RemoteModel(ModelClient):
    """The model at an address. `calibrate` must have succeeded before anything is embedded."""

    def __init__(self, config: RemoteConfig) -> None:
        """Raises RemoteConfigError or OSError if the file with the key cannot be used."""
        super().__init__(config)
        self._calibration: _Calibration | None = None

    @property
    def number(self) -> int | None:
        """Identifies the model: see `model_number`. None until it is calibrated."""
        return self._calibration.number if self._calibration else None

    def calibrate(self) -> None:
        """Learn the model's dimensions and its mean, from sentences of no level. Raises RemoteModelError."""
        with self._counting_failures(Label.PUBLIC, "sentence"):
            vectors = self._ask_for_sentences()
        dimensions = len(vectors[0])
        kept = self._config.dimensions or dimensions
        if kept > dimensions:
            fail(f"an embedding has {dimensions:,} dimensions: give --embedder-dimensions no more than that")
        mean = [math.fsum(components) / len(vectors) for components in zip(*vectors, strict=True)][:kept]
        self._calibration = _Calibration(model_number(self._config.model, kept), dimensions, mean)

    def embed_query(self, text: str, level: Label, seconds: float) -> Vector:
        """The embedding of a query of a session at *level*, within *seconds*. Raises RemoteModelError."""
        (vector,) = self._embed([readable(text)], level, "query", seconds)
        return vector

    def embed_chunks(self, texts: Sequence[str], level: Label) -> Sequence[Vector]:
        """The embeddings of chunks of *level*. An empty text is not sent, and gets zeros, which are similar to nothing.

        Raises RemoteModelError: ProbeFailedError unless the server asked for a pause, or embeds the probe sentence, so
        that the chunks may be the cause.
        """
        sent = [readable(text) for text in texts if text]
        try:
            made = iter(self._embed(sent, level, "chunk", _CHUNKS_SECONDS) if sent else ())
        except RemoteModelError as error:
            if not error.retry_after:
                self.probe(level, _CHUNKS_SECONDS)
            raise
        return [next(made) if text else [0] * len(self._calibrated.mean) for text in texts]

    def probe(self, level: Label, seconds: float) -> None:
        """Ask for the embedding of a constant sentence, over a connection of *level*.

        Raises ProbeFailedError if there is none within *seconds*.
        """
        try:
            self._ask(SENTENCES[:1], level, seconds, dimensions=self._calibrated.dimensions)
        except RemoteModelError as error:
            raise ProbeFailedError(str(error), retry_after=error.retry_after) from None

    def _ask_for_sentences(self) -> Sequence[Sequence[float]]:
        vectors: list[Sequence[float]] = []
        for first in range(0, len(SENTENCES), _SENTENCES_AT_ONCE):
            sentences = SENTENCES[first : first + _SENTENCES_AT_ONCE]
            dimensions = len(vectors[0]) if vectors else None
            vectors += self._ask(sentences, Label.PUBLIC, _CHUNKS_SECONDS, dimensions=dimensions)
        return vectors

    @property
    def _calibrated(self) -> _Calibration:
        if self._calibration is None:
            raise RemoteModelError("it has not answered yet")
        return self._calibration

    def _embed(self, texts: Sequence[str], level: Label, what: str, seconds: float) -> Sequence[Vector]:
        """The only way of a text to the address, but for the sentences."""
        if not level.level.can_flow_to(self._config.ceiling):
            raise AboveCeilingError
        mean = self._calibrated.mean
        place = str(self._config.address)
        metrics.REMOTE_TEXTS.labels(place, level.name, what).inc(len(texts))
        metrics.REMOTE_BYTES.labels(place, level.name, what).inc(sum(len(text.encode()) for text in texts))
        with self._counting_failures(level, what):
            answer = self._ask(texts, level, seconds, dimensions=self._calibrated.dimensions)
        return [_whole(vector[: len(mean)], mean) for vector in answer]

    @contextmanager
    def _counting_failures(self, level: Label, what: str) -> Iterator[None]:
        try:
            yield
        except RemoteModelError:
            metrics.REMOTE_FAILURES.labels(str(self._config.address), level.name, what).inc()
            raise

    def _ask(
        self, texts: Sequence[str], level: Label, seconds: float, *, dimensions: int | None
    ) -> Sequence[Sequence[float]]:
        request = {"model": self._config.model, "input": texts, "encoding_format": "float"}
        most = _MAX_BYTES + len(texts) * (dimensions or MAX_DIMENSIONS) * _MAX_BYTES_OF_COMPONENT
        return _vectors(self._post(request, level, seconds, most), len(texts), dimensions)


def _whole(vector: Sequence[float], mean: Sequence[float]) -> Vector:
    """The integer vector. Zeros for one that is the mean, or nearly: it has no direction."""
    return [0] * len(mean) if math.dist(vector, mean) < _SHORTEST else vector_of(vector, mean)


def _vectors(answer: Any, count: int, dimensions: int | None) -> Sequence[Sequence[float]]:
    """The vectors in an answer, in the order of the texts. Raises RemoteModelError."""
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or len(entries) != count:
        fail(f"its answer has no list of {count} embeddings")
    found: dict[int, Sequence[float]] = {}
    for place, entry in enumerate(entries):
        index, vector = _entry(entry, place)
        wanted = dimensions or len(vector)
        if len(vector) != wanted or not 0 < wanted <= MAX_DIMENSIONS:
            expected = f"not {dimensions:,} as before" if dimensions else f"where 1 to {MAX_DIMENSIONS:,} are allowed"
            fail(f"an embedding has {len(vector):,} dimensions, {expected}")
        dimensions = wanted
        found[index] = vector
    if found.keys() != set(range(count)):
        fail("its answer numbers the embeddings wrongly")
    return [found[index] for index in range(count)]


def _entry(entry: Any, place: int) -> tuple[int, Sequence[float]]:
    vector = entry.get("embedding") if isinstance(entry, Mapping) else None
    if not isinstance(vector, list):
        fail("its answer has no list of numbers as an embedding")
    index = entry.get("index", place)
    if type(index) is not int:
        fail("its answer numbers the embeddings wrongly")
    if not all(type(one) in {int, float} and -_MAX_COMPONENT <= one <= _MAX_COMPONENT for one in vector):
        raise RemoteModelError("an embedding has components that are no numbers, or too large", may_be_the_text=True)
    return index, vector
