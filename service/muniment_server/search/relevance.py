"""Relevance: how well an item fits a query, from 0 to 1, comparable between searches.

It combines the match by words with the match by embedding: 1 - (1 - words)(1 - closeness).

`words` is the share of the query's words that a chunk contains. A word weighs more if it is rare in what the session
sees, and less if it is a stop word. A word that the chunk does not contain counts by the square of the share of its
grams that the chunk contains: `cello` has half of the grams of `hello`, so it counts as a quarter of a match. The share
is also computed by stems, and the higher of the two is used: `deployed` matches `deploys`.

`closeness` is the cosine of the embeddings, scaled: 0 up to 0.25, which unrelated texts have, and 1 from 0.75 on, which
texts that say the same have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain

from muniment_server.search.grams import PREFIX, folded_words, grams_of_words, query_grams_of
from muniment_server.search.ranking import STOP_WEIGHT, Corpus, QueryTerms, Term

FITS = 0.3
"""Below this, an item hardly fits. Nearly everything that greetings and nonsense find is: see `make eval-people`."""
UNRELATED, THE_SAME = 250_000, 750_000
"""The cosines at which closeness begins to rise, and reaches 1, in millionths."""
OTHERS = 100
"""How many chunks without any of the words are added to the count, so that no word of the only item is frequent."""


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
        self._grams = {word: query_grams_of(word) for word in self._words}
        self._having = {word: [other for other in self._words if word in other] for word in self._words}

    def of(self, text: str, *, stems: int, similarity: int) -> float:
        """How well a chunk fits.

        *text* includes the header. *stems* has a bit for each stem of the query that the chunk contains, and
        *similarity* is the cosine in millionths.
        """
        by_stems = _share((weight, bool(stems & bits)) for weight, bits in self._stems)
        matched = max(by_stems, self._by_words(text))
        closeness = min(max((similarity - UNRELATED) / (THE_SAME - UNRELATED), 0), 1)
        return 1 - (1 - matched) * (1 - closeness)

    def _by_words(self, text: str) -> float:
        """The share by words and grams. A word that is part of another, as 52 of 52,000, counts as the other does."""
        folded = frozenset(folded_words(text))
        grams = _with_prefixes(grams_of_words(folded))
        own = {word: 1.0 if word in folded else _similarity(one, grams) for word, one in self._grams.items()}
        return _share((weight, max(own[other] for other in self._having[word])) for word, weight in self._words.items())


def _by_place(corpus: Corpus, stems: Sequence[Term]) -> Sequence[tuple[float, int]]:
    """The weight of each word of the query, with the bits of its stems, of which one is enough."""
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
    """An upper bound of how many chunks contain *word*: those that contain its rarest gram."""
    return min((counts[gram] for gram in query_grams_of(word) if gram in counts), default=0)


def _weight(corpus: Corpus, chunks: int, *, is_stop: bool) -> float:
    """The weight of a word. A stop word that occurs in no chunk has none: it belongs to the question."""
    if not is_stop:
        return corpus.rarity(chunks)
    return STOP_WEIGHT * corpus.rarity(chunks) if chunks else 0.0


def _with_prefixes(grams: Iterable[str]) -> Set[str]:
    """*grams*, and all prefixes that a query may have of them."""
    return frozenset(chain.from_iterable((gram, *(f"{gram[:size]}{PREFIX}" for size in (1, 2, 3))) for gram in grams))


def _similarity(own: Sequence[str], grams: Set[str]) -> float:
    """The square of the share of *own*, the grams of a word, that are among *grams*."""
    return (sum(gram in grams for gram in own) / len(own)) ** 2 if own else 0.0


def _share(parts: Iterable[tuple[float, float]]) -> float:
    """The share of the total weight that is matched. A part has a weight, and how well it is matched, from 0 to 1."""
    weighed = list(parts)
    total = sum(weight for weight, _ in weighed)
    return sum(weight * matched for weight, matched in weighed) / total if total else 0.0
