"""Relevance: how well an item fits a query, from 0 to 1, comparable between searches.

It combines the match by words with the match by embedding: 1 - (1 - words)(1 - closeness).

`words` is the share of the query's words that a chunk contains. A word weighs more if it is rare in what the session
sees, and less if it is a stop word or has fewer than five letters. A word that the chunk does not contain counts by the
square of the share of its grams that the chunk contains: `cello` has half of the grams of `hello`, so it counts as a
quarter of a match. A long word also counts by the square of the share of its letters with which a word of the chunk
begins. In scripts without spaces, where a whole question is one word, the share is not squared. The share is also
computed by stems, and the higher of the two is used: `deployed` matches `deploys`.

`closeness` is the cosine of the embeddings, scaled: 0 up to 0.25, which unrelated texts have, and 1 from 0.75 on, which
texts that say the same have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain

from muniment_server.search.grams import PREFIX, folded_words, grams_of_words, has_no_spaces, query_grams_of
from muniment_server.search.ranking import STOP_WEIGHT, Corpus, QueryTerms, Term, occurrences

FITS = 0.3
"""Below this, an item hardly fits. Nearly everything that greetings and nonsense find is: see `make eval-people`."""
UNRELATED, THE_SAME = 250_000, 750_000
"""The cosines at which closeness begins to rise, and reaches 1, in millionths."""
OTHERS = 100
"""How many chunks without any of the words are added to the count, so that no word of the only item is frequent."""


LONG = 5
"""Of so many letters, a word weighs in full. Of more, it may also be compared by its beginning, which has as many."""


class Relevance:
    """How well chunks fit one query."""

    def __init__(self, query: QueryTerms, corpus: Corpus, terms: Sequence[Term], stop_words: Collection[str]) -> None:
        known = replace(corpus, chunks=corpus.chunks + OTHERS)
        self._stems = _by_place(known, [term for term in terms if not term.is_gram])
        counts = {term.text: term.chunks for term in terms if term.is_gram}
        self._words = {
            word: _weight(known, word, occurrences(word, counts), is_stop=spelled in stop_words)
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
        alike = _by_beginning(folded)
        own = {
            word: 1.0 if word in folded else max(_by_grams(word, one, grams), _by_letters(word, alike))
            for word, one in self._grams.items()
        }
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
                max((stems[index].text for index in indexes), key=len),
                max(stems[index].chunks for index in indexes),
                is_stop=all(stems[index].is_stop for index in indexes),
            ),
            sum(1 << index for index in indexes),
        )
        for indexes in places.values()
    ]


def _weight(corpus: Corpus, word: str, chunks: int, *, is_stop: bool) -> float:
    """The weight of a word. One that occurs in no chunk weighs as if one had it. A stop word then weighs nothing, since
    it belongs to the question.
    """
    if is_stop and not chunks:
        return 0.0
    size = min(len(word) / LONG, 1) if word.isalpha() and not has_no_spaces(word) else 1
    return size * (STOP_WEIGHT if is_stop else 1) * corpus.rarity(max(chunks, 1))


def _with_prefixes(grams: Iterable[str]) -> Set[str]:
    """*grams*, and all prefixes that a query may have of them."""
    return frozenset(chain.from_iterable((gram, *(f"{gram[:size]}{PREFIX}" for size in (1, 2, 3))) for gram in grams))


def _by_grams(word: str, own: Sequence[str], grams: Set[str]) -> float:
    """The share of *own*, the grams of *word*, that are among *grams*; squared if the word stands between spaces."""
    share = sum(gram in grams for gram in own) / len(own) if own else 0.0
    return share if has_no_spaces(word) else share**2


def _by_beginning(folded: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The long words among *folded*, by their first letters."""
    found = defaultdict[str, list[str]](list)
    for word in folded:
        found[word[:LONG]].append(word)
    return found


def _by_letters(word: str, alike: Mapping[str, Sequence[str]]) -> float:
    """The square of the share of the letters of *word*, or of a longer one, with which both begin."""
    if len(word) <= LONG or not word.isalpha() or has_no_spaces(word):
        return 0.0
    others = alike.get(word[:LONG], ())
    return max((_in_common(word, one) / max(len(word), len(one)) for one in others), default=0.0) ** 2


def _in_common(word: str, other: str) -> int:
    """How many letters both begin with."""
    pairs = enumerate(zip(word, other, strict=False))
    return next((place for place, (one, two) in pairs if one != two), min(len(word), len(other)))


def _share(parts: Iterable[tuple[float, float]]) -> float:
    """The share of the total weight that is matched. A part has a weight, and how well it is matched, from 0 to 1."""
    weighed = list(parts)
    total = sum(weight for weight, _ in weighed)
    return sum(weight * matched for weight, matched in weighed) / total if total else 0.0
