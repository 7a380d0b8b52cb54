"""Weighs the terms of a query, and chooses the candidates to look up.

The score is BM25 over stems plus 0.3 times BM25 over grams. A stop word weighs 0.4 times as much as another word. Term
frequencies are counted over what the session may read, and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from muniment_server.search import languages
from muniment_server.search.grams import evidence_of, query_grams_of, words

K1, B = 1.2, 0.75
"""The parameters of BM25: term-frequency saturation and length normalization (Robertson and Zaragoza, 2009)."""
STOP_WEIGHT = 0.4
GRAM_WEIGHT = 0.3
MAX_STEMS, MAX_GRAMS = 40, 128
"""How many stems and grams of a query are used: the first ones."""
MAX_NAMES = 40
"""How many words of a query may be names of authors: the first ones."""
MAX_LENDERS = 100
"""How many hits lend score to their neighbors: the best ones."""
MAX_SAMPLED = 1000
"""How many chunks are sampled to count terms. If a session may read fewer, all counts are exact."""
FEW_SAMPLED = 250
"""In how many sampled chunks grams are counted, or a fortieth of all chunks if that is more: a gram weighs little."""
MAX_STEMS_COUNTED, MAX_GRAMS_COUNTED = 1000, 100
"""A stem or gram that the sample puts in no more chunks than this is counted exactly; others are estimated."""
_LATER = re.compile(r"(?<=[^\s.!?:;] )[^\W\d_]+")
"""Matches a word that does not begin a sentence."""
MAX_SHORT, MIN_COMMON, PART_COMMON = 3, 3, 10
"""A word of at most so many characters is common if at least so many chunks contain it, and one in so many of all."""
MIN_FIRST, PART_FIRST, MAX_FIRST = 1000, 20, 4000
"""The first candidate limit, in postings: a twentieth of the chunks, but at least the first and at most the last."""

Combination: TypeAlias = tuple[str, ...]
"""Terms that a match must all contain."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The chunks that a session may read: their number, and their total length in terms."""

    chunks: int
    stems: int
    grams: int

    @property
    def candidate_limit(self) -> int:
        """The first candidate limit, in postings."""
        return min(max(self.chunks // PART_FIRST, MIN_FIRST), MAX_FIRST)

    @property
    def stem_slope(self) -> float:
        """How much each stem of a chunk reduces the score of an occurrence."""
        return K1 * B * max(self.chunks, 1) / max(self.stems, 1)

    @property
    def gram_slope(self) -> float:
        """How much each gram of a chunk reduces the score of an occurrence."""
        return K1 * B * max(self.chunks, 1) / max(self.grams, 1)

    def rarity(self, chunks: int) -> float:
        """The inverse document frequency of a term that *chunks* contain."""
        known = max(self.chunks, chunks)
        return math.log(1 + (known - chunks + 0.5) / (chunks + 0.5))

    def least_best(self, terms: Sequence[Term]) -> float:
        """The score of a chunk with all grams of a query, if none of its stems occurs; otherwise 0.

        A match by grams alone counts by its share of this, so `cello` is no good match of `hello`. So does one by
        common words.
        """
        if any(term.chunks for term in terms if not (term.is_gram or term.is_common)):
            return 0.0
        return sum(term.weight(self) for term in terms) / (1 + K1)


DAMPING = K1 * (1 - B)
"""The part of the reduction that does not depend on the length of the chunk."""


@dataclass(frozen=True, slots=True)
class Term:
    """A stem or a gram of a query."""

    text: str
    chunks: int
    """The number of chunks that contain it."""
    is_gram: bool
    is_stop: bool = False
    is_common: bool = False
    """Whether it is a stem of a common word. See `QueryTerms.common`."""
    place: int = 0
    """The position of a stem's word in the query. A word has a stem for each language."""

    @property
    def is_content(self) -> bool:
        """Whether it is a stem that makes a chunk a candidate."""
        return not (self.is_gram or self.is_stop or self.is_common)

    def weight(self, corpus: Corpus) -> float:
        """The score of one occurrence, in millionths. Rare terms weigh more."""
        factor = GRAM_WEIGHT if self.is_gram else STOP_WEIGHT if self.is_stop else 1
        return 1e6 * (K1 + 1) * corpus.rarity(self.chunks) * factor


@dataclass(frozen=True, slots=True)
class Candidates:
    """The combinations of stems, and of grams, that make a chunk a candidate."""

    stems: tuple[Combination, ...]
    grams: tuple[Combination, ...]


class QueryTerms:
    """The words of a query, and their grams."""

    def __init__(self, query: str) -> None:
        self.words = {word: spelled for spelled, word in words(query)}
        """The words in lower case, with their accents, by their folded form."""
        grams = (gram for word in self.words for gram in query_grams_of(word))
        self.grams = list(dict.fromkeys(grams))[:MAX_GRAMS]
        self.spelled = sorted(set(self.words.values()))
        """The words in lower case, with their accents."""
        self.capitalized = _capitalized(query)
        """The words, in lower case, whose capital shows that they are names."""

    def common(self, corpus: Corpus, counts: Mapping[str, int]) -> frozenset[str]:
        """The short words that many chunks contain, as prepositions do in any language, unless a capital marks a name.

        *counts* has the number of chunks of each gram.
        """
        least = max(MIN_COMMON, corpus.chunks / PART_COMMON)
        return frozenset(
            spelled
            for word, spelled in self.words.items()
            if len(word) <= MAX_SHORT and occurrences(word, counts) >= least and spelled not in self.capitalized
        )

    def evidence(self, wanted: Collection[str]) -> list[Combination]:
        """The combinations of grams that count as a match of a word, for the words in *wanted*."""
        known = set(self.grams)
        found = (pair for word, spelled in self.words.items() if spelled in wanted for pair in evidence_of(word))
        return [pair for pair in dict.fromkeys(found) if known.issuperset(pair)]

    def names(self, stop_words: Collection[str]) -> list[str]:
        """The words that may be names of authors, folded as for grams: all but *stop_words*."""
        return [word for word, spelled in self.words.items() if spelled not in stop_words][:MAX_NAMES]


def _capitalized(query: str) -> frozenset[str]:
    """Words with a capital that do not begin a sentence. None if all have one, and in German, where nouns have it."""
    later = [word for word in _LATER.findall(query) if len(word) > 1]
    if languages.stemmer(query) == "german" or not any(word.islower() for word in later):
        return frozenset()
    return frozenset(word.lower() for word in later if word[0].isupper())


def occurrences(word: str, counts: Mapping[str, int]) -> int:
    """An upper bound of how many chunks contain *word*: those that contain its rarest gram."""
    return min((counts[gram] for gram in query_grams_of(word) if gram in counts), default=0)


def candidate_queries(
    corpus: Corpus, terms: Sequence[Term], evidence: Sequence[Combination], common: Sequence[Combination] = ()
) -> list[Candidates]:
    """The candidates to try in turn: first the rarest terms only (pairs if all are frequent), finally all terms.

    A limit excludes terms, never some postings of a term, so that results do not depend on the order of rows. Common
    words, whose evidence is *common*, make candidates only if no other word of the query occurs; stop words only if
    the query has no other words.
    """
    counts = {term.text: term.chunks for term in terms if term.is_gram}
    by_stem, by_gram = _stems(term for term in terms if term.is_content), _grams(evidence, counts)
    if not by_stem.all and not by_gram.all:
        by_stem, by_gram = _stems(term for term in terms if term.is_common), _grams(common, counts)
    if not evidence and not common and not by_stem.all:
        by_stem = _stems(term for term in terms if term.is_stop)
    limit = corpus.candidate_limit
    queries = (
        Candidates(by_stem.within(limit) or by_stem.together(), by_gram.within(limit)),
        Candidates(by_stem.first(limit), by_gram.first(limit)),
        Candidates(by_stem.all, by_gram.all),
    )
    return [query for query in dict.fromkeys(queries) if query.stems or query.grams] or [Candidates((), ())]


def _stems(terms: Iterable[Term]) -> _Rarest:
    return _Rarest({(term.text,): term.chunks for term in terms})


def _grams(evidence: Iterable[Combination], counts: Mapping[str, int]) -> _Rarest:
    return _Rarest({pair: min(counts.get(gram, 0) for gram in pair) for pair in evidence})


class _Rarest:
    """The combinations of terms that occur, rarest first."""

    def __init__(self, counts: dict[Combination, int]) -> None:
        self._counts = counts
        occurring = (terms for terms, count in counts.items() if count)
        self.all = tuple(sorted(occurring, key=lambda terms: (counts[terms], terms)))

    def within(self, limit: int) -> tuple[Combination, ...]:
        """The rarest ones that have at most *limit* postings together."""
        totals = accumulate(self._counts[terms] for terms in self.all)
        return tuple(terms for terms, total in zip(self.all, totals, strict=True) if total <= limit)

    def first(self, limit: int) -> tuple[Combination, ...]:
        """The same, but at least one, if there is any."""
        return self.within(limit) or self.all[:1]

    def together(self) -> tuple[Combination, ...]:
        """The rarest one combined with each of the others, or alone if there are no others."""
        return tuple(self.all[0] + other for other in self.all[1:]) or self.all
