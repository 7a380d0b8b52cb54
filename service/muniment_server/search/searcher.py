"""One search of one kind of items: words are counted, then matches ranked. See queries/search.sql and meaning.sql."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muniment_server.domain.records import ItemKind
from muniment_server.monitor.paging import PAGE_BYTES
from muniment_server.monitor.session_scope import Fence, Query, Rows, held
from muniment_server.search import languages
from muniment_server.search.chunks import PIECE_CHARS, Piece
from muniment_server.search.embeddings import EMBEDDER, WEIGHT, Vector, scores, signs
from muniment_server.search.ranking import (
    DAMPING,
    FEW_SAMPLED,
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
from muniment_server.search.snippets import snippet

_COMPARED = 200
"""Vectors that are compared with the query's."""
_BOUNDS = (1000, None)
"""Pieces that are looked at for them: those of which most may be left out, and all."""


class Search:
    """A query, and how much its words weigh for one session."""

    def __init__(self, fence: Fence, kind: ItemKind, query: str) -> None:
        self._fence = fence
        self._kind = kind
        self._words = Words(query)
        self._vector = fence.embed(query, fence.session.taint) if self._words.spelled else None
        self._meant: Mapping[str, Any] = {}
        self.semantic = False
        """Whether meaning was compared, too."""
        rows = fence.look(
            "search_terms",
            kind=kind,
            query=query,
            language=languages.stemmer(query),
            words=self._words.spelled,
            grams=self._words.grams,
            most_stems=MOST_STEMS,
            most_sampled=MOST_SAMPLED,
            few_sampled=FEW_SAMPLED,
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
        by_meaning = self._by_meaning(filters)
        attempts = [
            Query("search_items", {**self._ranking(), **by_meaning, **self._looked_for(one), **filters, "limit": limit})
            for one in wanted(self._corpus, self._terms, self._words.evidence(self._small))
        ]
        return self._fence.read_until(
            attempts,
            kind=self._kind,
            enough=lambda rows: rows[0].matches >= limit,  # by words: meaning finds as many without them
            shown=self._current,
        )

    def _by_meaning(self, filters: Mapping[str, object]) -> dict[str, object]:
        """What is found by meaning, and how a score is shared between meaning and words."""
        rows = self._alike(self._vector, filters) if self._vector else ()
        self.semantic = bool(rows)
        found = scores([row.likeness for row in rows])
        self._meant = {row.name: row for row, _ in zip(rows, found, strict=False)}
        return {
            "names": list(self._meant),
            "meant": found,
            "share": 1_000_000 - WEIGHT if self.semantic else 1_000_000,
        }

    def _alike(self, vector: Vector, filters: Mapping[str, object]) -> Rows:
        """The visible items of which vectors were compared, the most alike first."""
        asked = {"kind": self._kind, "embedder": EMBEDDER, "signs": signs(vector), "vector": vector, "most": _COMPARED}
        rows: Rows = ()
        for bound in _BOUNDS:
            rows = self._fence.look("search_meaning", **asked, **filters, bound=bound)
            if rows[0].compared == _COMPARED or bound is None or rows[0].looked_at < bound:
                break
        return [row for row in rows if row.name is not None]

    def _current(self, rows: Rows) -> Rows:
        """The items that were found, less those of which another version was."""
        return [row for row in held(rows) if row.start is not None or self._is_current(row)]

    def _is_current(self, row: Any) -> bool:
        """Whether what was found by meaning alone is still the version that was compared."""
        meant = self._meant.get(row.name)
        return meant is None or meant.change_id == row.change_id

    def snippet(self, row: Any) -> str:
        """The part of the best piece that shows why it was found. Of one found by its neighbours: its beginning."""
        best = row if row.start is not None else self._meant.get(row.name)
        piece = Piece(best.start, best.size) if best else Piece(0, PIECE_CHARS)
        return snippet(piece.of(row.content), self._grams)

    def _ranking(self) -> dict[str, object]:
        stems = [term for term in self._terms if not term.is_gram]
        return {
            "kind": self._kind,
            "stems": [quoted(term.text) for term in stems],
            "stem_weights": [term.weight(self._corpus) for term in stems],
            "grams": [quoted(gram) for gram in self._grams],
            "gram_weights": list(self._grams.values()),
            "damping": DAMPING,
            "stem_slope": self._corpus.stem_slope,
            "gram_slope": self._corpus.gram_slope,
            "most_lenders": MOST_LENDERS,
            "page_bytes": PAGE_BYTES,
        }

    def _looked_for(self, one: Wanted) -> dict[str, object]:
        return {"wanted_stems": one.stems or None, "wanted_grams": one.grams or None}
