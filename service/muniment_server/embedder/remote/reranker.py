"""A reranker at an address: asks a server which texts answer a query best, over the interface `/rerank`.

There are two forms of it. Text Embeddings Inference takes `texts` and serves one model. Infinity, vLLM, llama.cpp and
the services of Cohere and Jina take `documents` and the name of a model. So whether there is a name decides the form.
Answers of both forms are read in either case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muniment_server.domain.classification import Label
from muniment_server.embedder.remote.client import AboveCeilingError, ModelClient, RemoteModelError, fail
from muniment_server.embedder.remote.everyday_sentences import SENTENCES
from muniment_server.search.embeddings import readable
from muniment_server.search.reranking import LabeledText
from muniment_server.telemetry import embedder_metrics as metrics

_MAX_BYTES, _MAX_BYTES_OF_TEXT, _MAX_REPEATED = 16 * 1024, 256, 4
"""The limit of an answer: so many bytes, for each text, and for each byte of the texts, which some servers repeat."""
_MAX_SCORE = 1e30
_USUAL_TEXT = " ".join(SENTENCES)[:600]
"""As long as a chunk, so that a server which is too slow for searches is too slow for it too."""


class RemoteReranker(ModelClient):
    """The reranker at an address."""

    def order(self, query: str, texts: Sequence[LabeledText], level: Label, seconds: float) -> Sequence[int]:
        """The indexes of *texts*, best first, for a query of a session at *level*. Equal ones stay as they are.

        The only way of a text to the address, but for the sentences. Raises RemoteModelError.
        """
        if not all(one.level.can_flow_to(self._config.ceiling) for one in (level, *(text.level for text in texts))):
            raise AboveCeilingError
        place, read = str(self._config.address), [readable(one.text) for one in texts]
        asked = readable(query)
        size = sum(len(text.encode()) for text in (asked, *read))
        metrics.RERANKER_TEXTS.labels(place, level.name).inc(len(read))
        metrics.RERANKER_BYTES.labels(place, level.name).inc(size)
        outcome = "failed"
        try:
            scores = self._ask(asked, read, level, seconds)
            outcome = "reranked"
        finally:
            metrics.RERANKER_REQUESTS.labels(place, level.name, outcome).inc()
        return sorted(range(len(texts)), key=lambda index: -scores[index])

    def probe(self, count: int, level: Label, seconds: float) -> None:
        """Have *count* texts of usual size, of no level, ordered within *seconds*, over a connection of *level*.

        Raises RemoteModelError.
        """
        self._ask(SENTENCES[0], [_USUAL_TEXT] * count, level, seconds)

    def _ask(self, query: str, texts: Sequence[str], level: Label, seconds: float) -> Sequence[float]:
        if not self._config.model:
            request = {"query": query, "texts": texts, "truncate": True}
        else:
            request = {"model": self._config.model, "query": query, "documents": texts}
        size = sum(len(text.encode()) for text in (query, *texts))
        most = _MAX_BYTES + len(texts) * _MAX_BYTES_OF_TEXT + size * _MAX_REPEATED
        return scores_in(self._post(request, level, seconds, most), len(texts))


def scores_in(answer: Any, count: int) -> Sequence[float]:
    """The scores in an answer, in the order of the texts. Raises RemoteModelError."""
    entries = answer.get("results") if isinstance(answer, Mapping) else answer
    if not isinstance(entries, list) or len(entries) != count:
        fail(f"its answer has no list of {count} scores")
    found = dict(map(_entry, entries))
    if found.keys() != set(range(count)):
        fail("its answer numbers the texts wrongly")
    return [found[index] for index in range(count)]


def _entry(entry: Any) -> tuple[int, float]:
    fields = entry if isinstance(entry, Mapping) else {}
    index, score = fields.get("index"), fields.get("relevance_score", fields.get("score"))
    if type(index) is not int:
        fail("its answer numbers the texts wrongly")
    if type(score) not in {int, float} or not -_MAX_SCORE <= score <= _MAX_SCORE:
        raise RemoteModelError("its answer has scores that are no numbers", may_be_the_text=True)
    return index, score
