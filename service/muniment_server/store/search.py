"""One search of one kind of items: the words are counted, then the matches ranked. See queries/search.sql."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment_server.domain.paging import PAGE_BYTES
from muniment_server.domain.records import ItemKind
from muniment_server.domain.search import languages
from muniment_server.domain.search.pieces import PIECE_CHARS, Piece
from muniment_server.domain.search.ranking import (
    FLOOR,
    MOST_GRAMS_COUNTED,
    MOST_LENDERS,
    MOST_SAMPLED,
    MOST_STEMS,
    MOST_STEMS_COUNTED,
    Corpus,
    Term,
    Wanted,
    Words,
    quoted,
    wanted,
)
from muniment_server.domain.search.snippets import snippet
from muniment_server.store.fence import Fence, Query


class Search:
    """A query, and how much its words weigh for one session."""

    def __init__(self, fence: Fence, kind: ItemKind, query: str) -> None:
        self._fence = fence
        self._kind = kind
        self._words = Words(query)
        rows = fence.look(
            "search_terms",
            kind=kind,
            query=query,
            language=languages.stemmer(query),
            words=self._words.spelled,
            grams=self._words.grams,
            most_stems=MOST_STEMS,
            most_sampled=MOST_SAMPLED,
            most_stems_counted=MOST_STEMS_COUNTED,
            most_grams_counted=MOST_GRAMS_COUNTED,
        )
        self._corpus = next(Corpus(row.pieces, row.stems, row.grams) for row in rows if row.what == "corpus")
        self._small = {row.text for row in rows if row.what == "small"}
        self._terms = [
            Term(row.text, row.pieces, is_gram=row.what == "gram", is_stop=row.what == "stop")
            for row in rows
            if row.what in {"stem", "stop", "gram"}
        ]
        self._grams = {term.text: term.weight(self._corpus) for term in self._terms if term.is_gram}

    def results(self, *, limit: int, **filters: object) -> Sequence[Any]:
        """Up to *limit* items, best first: at first those with the rarest words only."""
        attempts = [
            Query("search_items", {**self._ranking(), **self._looked_for(one), **filters, "limit": limit})
            for one in wanted(self._corpus, self._terms, self._words.evidence(self._small))
        ]
        return self._fence.read_until(attempts, kind=self._kind, enough=limit)

    def snippet(self, row: Any) -> str:
        """The part of the best piece that shows why it was found. Of one found by its neighbours: its beginning."""
        piece = Piece(row.start or 0, row.size or PIECE_CHARS)
        return snippet(piece.of(row.content), self._grams)

    def _ranking(self) -> dict[str, object]:
        stems = [term for term in self._terms if not term.is_gram]
        return {
            "kind": self._kind,
            "stems": [quoted(term.text) for term in stems],
            "stem_weights": [term.weight(self._corpus) for term in stems],
            "grams": [quoted(gram) for gram in self._grams],
            "gram_weights": list(self._grams.values()),
            "floor": FLOOR,
            "stem_slope": self._corpus.stem_slope,
            "gram_slope": self._corpus.gram_slope,
            "most_lenders": MOST_LENDERS,
            "page_bytes": PAGE_BYTES,
        }

    def _looked_for(self, one: Wanted) -> dict[str, object]:
        return {"wanted_stems": one.stems or None, "wanted_grams": one.grams or None}
