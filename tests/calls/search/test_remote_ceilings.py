"""Several ceilings stand one behind the other before a text is sent to an address. Each of them holds alone.

A test through all of them notices only when the last one is missing, too.
"""

from __future__ import annotations

from typing import Any

import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.errors import StaleSession
from muniment_server.domain.items import ItemKind
from muniment_server.embedder.remote.configuration import remote_socket, reranker_socket
from muniment_server.embedder.remote.reranking_service import reranking
from muniment_server.embedder.socket import remote_query_embedder, serve_queries
from muniment_server.search.embeddings import no_embedder
from muniment_server.search.reranking import LabeledText, Reranker
from muniment_server.search.search import Searcher
from tests.support.answers import CONFIDENTIAL, INTERNAL, PUBLIC
from tests.support.labels import untrusted
from tests.support.reranking_server import reranking_server


def test_a_worker_gives_no_query_above_the_ceiling_to_the_embedder(tmp_path):
    """Not even to an embedder that would take it."""
    path, received = str(tmp_path / "e"), []

    def embed(text, _seconds):
        received.append(text)
        return [1, 2, 3]

    ask = remote_query_embedder(path, "stub", PUBLIC)
    with (
        serve_queries(remote_socket(path, Label.PUBLIC), embed),
        serve_queries(remote_socket(path, Label.INTERNAL), embed),
    ):
        below, above = ask("low", Label.PUBLIC), ask("high", Label.INTERNAL)

        assert below is not None
        assert below() is not None
    assert above is None
    assert received == ["low"]


class Stale:
    """A scope whose taint another server has raised."""

    taint = Label.PUBLIC

    def session(self):
        raise StaleSession


def test_a_search_asks_no_model_before_the_taint_is_confirmed():
    """Also where there is no built-in one."""
    stale: Any = Stale()
    asked = []
    for embedders in ((no_embedder, lambda text, _: asked.append(text)), (lambda text, _: asked.append(text),)):
        with pytest.raises(StaleSession):
            Searcher(*embedders).search(stale, ItemKind.MEMORY, "query", limit=1)

    assert asked == []


class Orders:
    """A reranker up to INTERNAL, and what it was asked to order."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.reranker = Reranker(INTERNAL, self._order)

    def rerank(self, session: Classification, *levels: Classification):
        texts = [LabeledText(untrusted(level), level.name) for level in levels]
        return self.reranker.rerank("query", texts, untrusted(session))

    def _order(self, _query, texts, _level):
        self.asked.append([one.text for one in texts])
        return range(len(texts))


def test_a_search_of_a_session_above_the_ceiling_is_not_reranked_even_if_it_found_only_what_is_below():
    orders = Orders()
    below, above = orders.rerank(INTERNAL, PUBLIC, PUBLIC), orders.rerank(CONFIDENTIAL, PUBLIC, PUBLIC)

    assert (below, above) == ([0, 1], None)
    assert orders.asked == [["PUBLIC", "PUBLIC"]]


def test_a_search_that_found_a_text_above_the_ceiling_is_not_reranked_even_for_a_session_below():
    """It should not have found it. The guard of what leaves would notice only after the text was sent."""
    orders = Orders()
    below, above = orders.rerank(INTERNAL, PUBLIC, INTERNAL), orders.rerank(INTERNAL, PUBLIC, CONFIDENTIAL)

    assert (below, above) == ([0, 1], None)
    assert orders.asked == [["PUBLIC", "INTERNAL"]]


def test_rerankings_are_served_at_no_socket_above_the_ceiling(tmp_path):
    path = str(tmp_path / "e")
    with reranking_server() as server, reranking(server.config(INTERNAL), server.reranker(INTERNAL), path):
        served = {str(socket) for socket in tmp_path.iterdir()}

    below = (Label.PUBLIC_TRUSTED, Label.PUBLIC, Label.INTERNAL_TRUSTED, Label.INTERNAL)
    assert served == {reranker_socket(path, label) for label in below}
