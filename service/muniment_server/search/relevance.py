"""Relevance: how well an item fits a query, from 0 to 1, so that it means the same in every response.

It joins what is matched by words and by the embedding: 1 - (1 - words)(1 - closeness).

Words are the share of the query that a chunk has. Each word counts by its rarity in what the session sees, and a stop
word less. A word that the chunk does not have counts by the square of the share of its grams that the chunk has: half
of the grams of `hello` are in `cello`, which is a quarter. The share by stems is computed as well, and the higher of
the two counts: `deploys` is matched by `deployed`.

Closeness is the cosine, scaled: unrelated texts have up to 0.25 or so, and texts that say the same 0.75 or more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from muniment_server.search.grams import PREFIX, folded_words, grams_of_words, query_grams_of
from muniment_server.search.ranking import STOP_WEIGHT, Corpus, QueryTerms, Term

FITS = 0.3
"""Below this, an item hardly fits: so are nearly all that greetings and nonsense find. See `make eval-people`."""
UNRELATED, THE_SAME = 250_000, 750_000
"""The cosines from which on an embedding counts, and counts in full, in millionths."""
OTHERS = 100
"""How many chunks without any of the words are counted as well: a word of the only item would otherwise be frequent."""


class Relevance:
    """How well chunks fit one query."""

    def __init__(self, query: QueryTerms, corpus: Corpus, terms: Sequence[Term], stop_words: Collection[str]) -> None:
        known = replace(corpus, chunks=corpus.chunks + OTHERS)
        self._stems = _by_place(known, [term for term in terms if not term.is_gram])
        counts = {term.text: term.chunks for term in terms if term.is_gram}
        self._words = {
            word: _weight(known, _occurrences(word, counts), is_stop=spelled in stop_words)
            for word, spelled in query.words.items()
        }

    def of(self, text: str, *, stems: int, similarity: int) -> float:
        """How well a chunk fits: *text* with its header, *stems* by their bits, and its cosine in millionths."""
        by_stems = _share((weight, bool(stems & bits)) for weight, bits in self._stems)
        matched = max(by_stems, self._by_words(text))
        closeness = min(max((similarity - UNRELATED) / (THE_SAME - UNRELATED), 0), 1)
        return 1 - (1 - matched) * (1 - closeness)

    def _by_words(self, text: str) -> float:
        """A word that is part of another of the query, as 52 of 52,000, matches as well as that one."""
        folded = frozenset(folded_words(text))
        grams = frozenset(grams_of_words(folded))
        own = {word: 1.0 if word in folded else _similarity(word, grams) for word in self._words}
        best = {word: max(own[other] for other in own if word in other) for word in own}
        return _share((weight, best[word]) for word, weight in self._words.items())


def _by_place(corpus: Corpus, stems: Sequence[Term]) -> Sequence[tuple[float, int]]:
    """The weight of each word, and the bits of its stems, of which one is enough."""
    places: dict[int, list[int]] = {}
    for index, term in enumerate(stems):
        places.setdefault(term.place, []).append(index)
    return [
        (
            _weight(
                corpus,
                max(stems[index].chunks for index in indexes),
                is_stop=all(stems[index].is_stop for index in indexes),
            ),
            sum(1 << index for index in indexes),
        )
        for indexes in places.values()
    ]


def _occurrences(word: str, counts: Mapping[str, int]) -> int:
    return min((counts[gram] for gram in query_grams_of(word) if gram in counts), default=0)


def _weight(corpus: Corpus, chunks: int, *, is_stop: bool) -> float:
    """How much a word counts. A stop word that does not occur says nothing: it is one of the question."""
    if not is_stop:
        return corpus.rarity(chunks)
    return STOP_WEIGHT * corpus.rarity(chunks) if chunks else 0.0


def _similarity(word: str, grams: Set[str]) -> float:
    """The square of the share of its grams that are among *grams*."""
    own = query_grams_of(word)
    return (sum(_is_among(gram, grams) for gram in own) / len(own)) ** 2 if own else 0.0


def _is_among(gram: str, grams: Set[str]) -> bool:
    letters = gram.removesuffix(PREFIX)
    return gram in grams if letters == gram else any(one.startswith(letters) for one in grams)


def _share(parts: Iterable[tuple[float, float]]) -> float:
    """How much of the weight is matched, where each part has its weight and how well it is matched."""
    weighed = list(parts)
    total = sum(weight for weight, _ in weighed)
    return sum(weight * matched for weight, matched in weighed) / total if total else 0.0
