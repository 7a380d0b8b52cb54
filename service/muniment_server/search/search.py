"""Searches the items of one kind: counts terms, compares embeddings, then ranks the matches.

See `lexical.sql` and `semantic.sql`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias
from uuid import UUID

from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import Label
from muniment_server.domain.items import ALL_ITEMS, PAGE_BYTES, Item, ItemFilter, ItemKind
from muniment_server.domain.text import after_prefix
from muniment_server.monitor.session_scope import Query, SessionScope
from muniment_server.search import languages
from muniment_server.search.chunks import CHUNK_CHARS, Chunk
from muniment_server.search.dates import dates
from muniment_server.search.embeddings import (
    DIMENSIONS,
    EMBEDDER,
    SEMANTIC_WEIGHT,
    RemoteVector,
    Vector,
    no_embedder,
    scores,
    signs,
)
from muniment_server.search.exactness import MORE_COMPARED, Exactness
from muniment_server.search.grams import is_part_of_occurring_word
from muniment_server.search.index import header
from muniment_server.search.marks import author_mark
from muniment_server.search.ranking import (
    DAMPING,
    FEW_SAMPLED,
    MAX_GRAMS_COUNTED,
    MAX_LENDERS,
    MAX_SAMPLED,
    MAX_STEMS,
    MAX_STEMS_COUNTED,
    Candidates,
    Corpus,
    QueryTerms,
    Term,
    candidate_queries,
)
from muniment_server.search.relevance import Relevance
from muniment_server.search.reranking import NO_RERANKER, LabeledText, Reranker
from muniment_server.search.snippets import snippet
from muniment_server.search.tsquery import any_of, quoted

PendingVector: TypeAlias = Callable[[], Vector | None]
"""Waits for the embedding of a query. None if there is none in time."""
PendingRemoteVector: TypeAlias = Callable[[], RemoteVector | None]
"""The same for a model at an address."""
QueryEmbedder: TypeAlias = Callable[[str, Label], PendingVector | None]
"""Starts to embed a query at the level of its session, and does not wait. None if there is no embedder."""
RemoteQueryEmbedder: TypeAlias = Callable[[str, Label], PendingRemoteVector | None]
"""The same for a model at an address. None also for a session above its ceiling."""

_COMPARED_VECTORS, _FEW_COMPARED = 200, 50
"""How many vectors are compared: fewer of longer ones, whose signs say more, so that it takes no longer."""
_CANDIDATE_LIMITS = ((1000, 15), (None, 100))
"""The candidate limit, and the percentage of the lists to read: first few, and everything if too few chunks pass the
shadow and the filters."""
_MOST_FITTING = 100
"""How many of the best matches are considered if a least relevance is wanted."""
_LEADING, _CLEARLY = 10, 0.1
"""The most relevant of so many matches is put first, if its relevance is higher than that of the first by so much."""
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Match:
    """One result. Scores are comparable within one search only, relevance between all: see `relevance.py`."""

    item: Item
    score: float
    snippet: str
    relevance: float


@dataclass(frozen=True, slots=True)
class Found:
    """The results of a search, best first, whether embeddings were compared, and whether a reranker ordered them."""

    matches: Sequence[Match]
    semantic: bool
    reranked: bool


@dataclass(frozen=True, slots=True)
class _TermRow:
    what: str
    text: str
    chunks: int
    stems: int
    grams: int
    place: int


@dataclass(frozen=True, slots=True)
class _Similar:
    looked_at: int
    compared: int
    skipped: bool
    growing: bool
    name: str | None
    change_id: UUID
    start: int
    size: int
    thread: str | None
    place: str | None
    turn_factor: int
    by_named_author: bool
    similarity: int


@dataclass(frozen=True, slots=True)
class _MatchRow(Item):
    change_id: UUID
    score: float
    start: int | None
    size: int | None
    stems: int | None
    matches: int | None


@dataclass(frozen=True, slots=True)
class _LexicalQuery:
    """A query, and how much its terms weigh for one session."""

    corpus: Corpus
    terms: Sequence[Term]
    candidates: Sequence[Candidates]
    authors: str | None
    """A query for the authors that the query names, if any word of it may be a name."""
    relevance: Relevance
    names: Collection[str]
    """The stop words of the query that are names in it, such as Will."""

    @property
    def gram_weights(self) -> Mapping[str, float]:
        """The score of one occurrence of each gram."""
        return {term.text: term.weight(self.corpus) for term in self.terms if term.is_gram}


@dataclass(frozen=True, slots=True)
class _SemanticMatches:
    """The items whose embeddings are most similar to the query, by name, and their scores."""

    similar: Mapping[str, _Similar]
    scores: Sequence[int]
    compared: bool


class Searcher:
    """Searches items by words and, if there is an embedder, by embeddings."""

    def __init__(
        self,
        embed: QueryEmbedder,
        embed_remotely: RemoteQueryEmbedder = no_embedder,
        reranker: Reranker = NO_RERANKER,
    ) -> None:
        self._embed = embed
        self._embed_remotely = embed_remotely
        self._reranker = reranker

    def search(
        self,
        scope: SessionScope,
        kind: ItemKind,
        query: str,
        *,
        limit: int,
        min_relevance: float = 0,
        tier: Tier = Tier.MEMORY,
        wanted: ItemFilter = ALL_ITEMS,
    ) -> Found:
        """Up to *limit* items that match *query*, best first. Only notes have a *tier* other than MEMORY.

        Of the 100 best, those whose relevance is below *min_relevance* are left out.
        """
        remote, built_in = self._start_embedding(scope, query)
        terms = QueryTerms(query)
        lexical = _lexical(scope, kind, query, terms)
        filters = {"kind": kind, "tier": tier, "authors": lexical.authors, **filter_parameters(wanted)}
        semantic = self._semantic(scope, query, filters, remote, built_in)
        exactness = Exactness(query, lexical.names)
        enough = max(limit, _MOST_FITTING if min_relevance else 0, _LEADING if semantic.compared else 0)
        most = self._reranker.matches_for(scope.taint, enough) + (MORE_COMPARED if exactness.distinguishes else 0)
        ranked = [row for row in _ranked(scope, lexical, semantic, filters, most) if _is_current(row, semantic)]
        found = _most_exact_first(ranked, semantic, exactness)
        order = self._reranker.rerank(query, [_labeled(row, kind, semantic) for row in found], scope.taint)
        fitting = (
            (row, fit)
            for row in _in_order(found, order)[:enough]
            if (fit := _relevance(row, kind, semantic, lexical.relevance, exactness)) >= min_relevance
        )
        if semantic.compared and order is None:
            rows = _clearly_most_relevant_first(list(islice(fitting, max(limit, _LEADING))))[:limit]
        else:
            rows = list(islice(fitting, limit))
        scope.record_read(kind, [row.version for row, _ in rows])
        weights = lexical.gram_weights
        matches = [Match(row, row.score, snippet(_best_chunk(row, semantic), weights), fit) for row, fit in rows]
        return Found(matches, semantic.compared, order is not None)

    def _start_embedding(
        self, scope: SessionScope, query: str
    ) -> tuple[PendingRemoteVector | None, PendingVector | None]:
        """Start the embedding by the model at the address or, if this session may not use that, the built-in one.

        Confirms the taint first: if another server has raised it, the query must not go to an embedder of the old
        level. Raises StaleSession.
        """
        if self._embed is not no_embedder or self._embed_remotely is not no_embedder:
            scope.session()  # raises StaleSession if the taint is an old one
        if (remote := self._embed_remotely(query, scope.taint)) is not None:
            return remote, None
        return None, self._embed(query, scope.taint)

    def _semantic(
        self,
        scope: SessionScope,
        query: str,
        filters: Mapping[str, object],
        remote: PendingRemoteVector | None,
        built_in: PendingVector | None,
    ) -> _SemanticMatches:
        """The visible items most similar to *query*, by one model: that at the address, if it can, or the built-in one.

        That depends on the session's taint, on what it sees, and on what is made in time, and on nothing above.
        """
        if remote is not None:
            if (answer := remote()) is not None:
                model = {"embedder": None, "model": answer.model}
                if (found := _similar(scope, answer.vector, {**filters, **model})) is not None:
                    return found
            built_in = self._embed(query, scope.taint)
        vector = None if built_in is None else built_in()
        if vector is None:
            return _nothing_compared()
        return _similar(scope, vector, {**filters, "embedder": EMBEDDER, "model": None}) or _nothing_compared()


def filter_parameters(wanted: ItemFilter) -> dict[str, object]:
    """The parameters of queries with a filter."""
    return {
        "name_prefix": wanted.name_prefix,
        "after_prefix": after_prefix(wanted.name_prefix),
        "tags": list(wanted.tags),
        "any_tag": wanted.any_tag and bool(wanted.tags),
        "thread": wanted.thread,
        "start_time": wanted.start_time,
        "end_time": wanted.end_time,
    }


def _lexical(scope: SessionScope, kind: ItemKind, query: str, terms: QueryTerms) -> _LexicalQuery:
    """Count the terms of *query* in the items that the session sees."""
    parameters = {
        "kind": kind,
        "query": " ".join([query, *dates(query)]),
        "language": languages.stemmer(query),
        "words": terms.spelled,
        "grams": terms.grams,
        "quoted_grams": [quoted(gram) for gram in terms.grams],
        "most_stems": MAX_STEMS,
        "max_sampled": MAX_SAMPLED,
        "few_sampled": FEW_SAMPLED,
        "max_stems_counted": MAX_STEMS_COUNTED,
        "max_grams_counted": MAX_GRAMS_COUNTED,
    }
    rows = scope.look_up(Query("search_terms", _TermRow, parameters))
    corpus = next(Corpus(row.chunks, row.stems, row.grams) for row in rows if row.what == "corpus")
    listed = {row.text for row in rows if row.what == "stop_word"}
    names = listed & terms.capitalized
    stop_words = listed - names
    counts = {row.text: row.chunks for row in rows if row.what == "gram"}
    common = terms.common(corpus, counts) - stop_words
    occurring = {gram for gram, chunks in counts.items() if chunks}
    counted = [
        Term(
            row.text,
            row.chunks,
            is_gram=row.what == "gram",
            is_stop=row.what == "stop" and row.text not in names,
            is_common=row.what == "stem" and row.text in common,
            place=row.place,
        )
        for row in rows
        if row.what in {"stem", "stop"} or (row.what == "gram" and not is_part_of_occurring_word(row.text, occurring))
    ]
    content = frozenset(terms.spelled) - stop_words - common
    candidates = candidate_queries(corpus, counted, terms.evidence(content), terms.evidence(common))
    authors = any_of((author_mark(word),) for word in terms.names(stop_words))
    relevance = Relevance(terms, corpus, counted, stop_words)
    return _LexicalQuery(corpus, counted, candidates, authors or None, relevance, names)


def _nothing_compared() -> _SemanticMatches:
    return _SemanticMatches({}, [], compared=False)


def _similar(scope: SessionScope, vector: Vector, parameters: Mapping[str, object]) -> _SemanticMatches | None:
    """The visible items most similar to *vector*. None while the embeddings of its model are not complete."""
    most = max(_FEW_COMPARED, min(_COMPARED_VECTORS, _COMPARED_VECTORS * DIMENSIONS // len(vector)))
    compared = {**parameters, "signs": signs(vector), "vector": vector, "most": most}
    rows: Sequence[_Similar] = ()
    for limit, percent in _CANDIDATE_LIMITS:
        rows = scope.look_up(Query("search_embeddings", _Similar, {**compared, "bound": limit, "percent": percent}))
        if rows[0].growing:
            return None
        if rows[0].compared == most or limit is None or (rows[0].looked_at < limit and not rows[0].skipped):
            break
    similar = [row for row in rows if row.name is not None]
    found = scores([row.similarity for row in similar])
    best = {row.name: row for row, _ in zip(similar, found, strict=False) if row.name is not None}
    return _SemanticMatches(best, found, compared=bool(similar))


def _ranked(
    scope: SessionScope, lexical: _LexicalQuery, semantic: _SemanticMatches, filters: Mapping[str, object], limit: int
) -> Sequence[_MatchRow]:
    """Try the candidates in turn until there are enough matches. Each finds at least the matches of the one before."""
    stems = [term for term in lexical.terms if not term.is_gram]
    grams = lexical.gram_weights
    parameters = {
        **filters,
        "limit": limit,
        "page_bytes": PAGE_BYTES,
        "stems": [quoted(term.text) for term in stems],
        "stem_weights": [term.weight(lexical.corpus) for term in stems],
        "grams": [quoted(gram) for gram in grams],
        "gram_weights": list(grams.values()),
        "least_best": lexical.corpus.least_best(lexical.terms),
        "damping": DAMPING,
        "stem_slope": lexical.corpus.stem_slope,
        "gram_slope": lexical.corpus.gram_slope,
        "max_lenders": MAX_LENDERS,
        "names": list(semantic.similar),
        "threads": [row.thread for row in semantic.similar.values()],
        "places": [row.place for row in semantic.similar.values()],
        "turn_factors": [row.turn_factor for row in semantic.similar.values()],
        "by_named_author": [row.by_named_author for row in semantic.similar.values()],
        "semantic_scores": semantic.scores,
        "share": _MILLION - SEMANTIC_WEIGHT if semantic.compared else _MILLION,
        "semantic_share": SEMANTIC_WEIGHT,
    }
    rows: Sequence[_MatchRow] = ()
    for one in lexical.candidates:
        candidates = {"wanted_stems": any_of(one.stems) or None, "wanted_grams": any_of(one.grams) or None}
        rows = scope.look_up(Query("search_items", _MatchRow, {**parameters, **candidates}))
        if rows and (rows[0].matches or 0) >= limit:  # matches by words: similar items are found in any case
            break
    return rows


def _is_current(row: _MatchRow, semantic: _SemanticMatches) -> bool:
    """Whether an item that only its embedding found is still the version that was compared."""
    similar = semantic.similar.get(row.name)
    return row.start is not None or similar is None or similar.change_id == row.change_id


def _best_chunk(row: _MatchRow, semantic: _SemanticMatches) -> str:
    """The text of the best chunk, or the beginning of an item that only its neighbors led to."""
    similar = semantic.similar.get(row.name)
    if row.start is not None and row.size is not None:
        chunk = Chunk(row.start, row.size)
    elif similar is not None:
        chunk = Chunk(similar.start, similar.size)
    else:
        chunk = Chunk(0, CHUNK_CHARS)
    return chunk.of(row.content)


def _relevance(
    row: _MatchRow, kind: ItemKind, semantic: _SemanticMatches, relevance: Relevance, exactness: Exactness
) -> float:
    similar = semantic.similar.get(row.name)
    text = f"{header(kind, row.name, row.author, row.tags)} {_best_chunk(row, semantic)}"
    if exactness.has_whole(text):
        return 1.0
    return relevance.of(text, stems=row.stems or 0, similarity=similar.similarity if similar else 0)


def _labeled(row: _MatchRow, kind: ItemKind, semantic: _SemanticMatches) -> LabeledText:
    """What a reranker reads of a match: its best chunk, after the key of a memory or the author of a passage."""
    header = row.name if kind is ItemKind.MEMORY else row.author
    text = _best_chunk(row, semantic)
    return LabeledText(row.label, f"{header}: {text}" if header else text)


def _most_exact_first(
    rows: Sequence[_MatchRow], semantic: _SemanticMatches, exactness: Exactness
) -> Sequence[_MatchRow]:
    """The rows, in the order of the ranking where the best chunks are equally exact."""
    if not exactness.distinguishes:
        return rows
    exact = [exactness.rank_of(f"{row.name} {_best_chunk(row, semantic)}") for row in rows]
    return _in_order(rows, sorted(range(len(rows)), key=lambda index: -exact[index]))


def _clearly_most_relevant_first(rows: list[tuple[_MatchRow, float]]) -> list[tuple[_MatchRow, float]]:
    """The rows, with the most relevant of the first ones in front if it clearly is. Scores stay with their places.

    Otherwise a word that is in many texts, such as a stop word of a language without a list of them, would outweigh the
    best embedding.
    """
    fits = [fit for _, fit in rows[:_LEADING]]
    if not fits or max(fits) < fits[0] + _CLEARLY:
        return rows
    best = fits.index(max(fits))
    order = [best, *(place for place in range(len(rows)) if place != best)]
    found = _in_order([row for row, _ in rows], order)
    return [(row, rows[place][1]) for row, place in zip(found, order, strict=True)]


def _in_order(rows: Sequence[_MatchRow], order: Sequence[int] | None) -> Sequence[_MatchRow]:
    """The rows in another order. Each gets the score of its new place, so that scores still fall."""
    if order is None:
        return rows
    return [replace(rows[index], score=row.score) for index, row in zip(order, rows, strict=True)]
