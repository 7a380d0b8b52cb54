"""From the words of a query to what its matches weigh, and which of them are looked for.

The score is BM25 of the stems, plus 0.3 times BM25 of the grams; stop words weigh 0.4 of a word. How often words
occur is counted over what the session may read, and over nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from muniment_server.search.grams import evidence_of, grams_of, words

K1, B = 1.2, 0.75
"""Of BM25: how soon more occurrences count no more, and how much the length counts (Robertson and Zaragoza, 2009)."""
STOP_WEIGHT = 0.4
GRAM_WEIGHT = 0.3
MOST_STEMS, MOST_GRAMS = 40, 128
"""Words and grams of a query that count, the first ones."""
MOST_LENDERS = 100
"""Hits that lend to their neighbours, the best ones."""
MOST_SAMPLED = 1000
"""Pieces in which words are counted first. Where a session may read fewer, all counts are exact."""
FEW_SAMPLED = 250
"""Of them, those in which grams are counted, or a fortieth of all: there are many grams, and each weighs little."""
MOST_STEMS_COUNTED, MOST_GRAMS_COUNTED = 1000, 100
"""A stem, or a gram, that seems to be in no more pieces is counted exactly; others are as frequent as in the sample."""
FEWEST_FIRST, PART_FIRST, MOST_FIRST = 1000, 20, 4000
"""Occurrences of the words that matches are looked for by at first: a twentieth of the pieces, at least, at most."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a query is ranked against: how many pieces a session may read, and how long they are together."""

    pieces: int
    stems: int
    grams: int

    @property
    def bound(self) -> int:
        """Occurrences of the words that matches are looked for by at first."""
        return min(max(self.pieces // PART_FIRST, FEWEST_FIRST), MOST_FIRST)

    @property
    def stem_slope(self) -> float:
        """How much each stem of a piece lessens what one occurrence is worth."""
        return K1 * B * max(self.pieces, 1) / max(self.stems, 1)

    @property
    def gram_slope(self) -> float:
        """The same of each gram."""
        return K1 * B * max(self.pieces, 1) / max(self.grams, 1)


DAMPING = K1 * (1 - B)
"""What an occurrence is lessened by whatever the length of the piece."""


@dataclass(frozen=True, slots=True)
class Term:
    """A stem or a gram of a query."""

    text: str
    pieces: int
    """In how many pieces it occurs."""
    is_gram: bool
    is_stop: bool = False

    def weight(self, corpus: Corpus) -> float:
        """What one occurrence is worth, in millionths: the rarer, the more."""
        known = max(corpus.pieces, self.pieces)
        rarity = math.log(1 + (known - self.pieces + 0.5) / (self.pieces + 0.5))
        return 1e6 * (K1 + 1) * rarity * (GRAM_WEIGHT if self.is_gram else STOP_WEIGHT if self.is_stop else 1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What matches are looked for by, as two queries of text search. Empty: none."""

    stems: str
    grams: str


class Words:
    """The words of a query, as grams see them."""

    def __init__(self, query: str) -> None:
        self._spelled = {word: spelled for spelled, word in words(query)}
        grams = (gram for word in self._spelled for gram in grams_of(word))
        self.grams = list(dict.fromkeys(grams))[:MOST_GRAMS]
        self.spelled = sorted(set(self._spelled.values()))
        """The words in lower case, with their accents."""

    def evidence(self, small: Collection[str]) -> list[tuple[str, ...]]:
        """The combinations of grams that count as a match of a word, of all but *small* words."""
        known = set(self.grams)
        found = (pair for word, spelled in self._spelled.items() if spelled not in small for pair in evidence_of(word))
        return [pair for pair in dict.fromkeys(found) if known.issuperset(pair)]


def wanted(corpus: Corpus, terms: Sequence[Term], evidence: Sequence[tuple[str, ...]]) -> list[Wanted]:
    """What to look for, first by the rarest words only, or by two words at once where all are frequent; then by all.

    A bound leaves out words, never matches of a word: what is found must not hang on the order of rows.
    """
    said = {term.text: term.pieces for term in terms if not term.is_gram and not term.is_stop}
    stops = {term.text: term.pieces for term in terms if term.is_stop}
    if not said and not evidence:
        said = stops
    stems = _Rarest({(text,): count for text, count in said.items()})
    occurring = {term.text: term.pieces for term in terms if term.is_gram}
    pairs = _Rarest({pair: min(occurring.get(gram, 0) for gram in pair) for pair in evidence})
    queries = (
        Wanted(_any_of(stems.within(corpus.bound) or stems.together()), _any_of(pairs.within(corpus.bound))),
        Wanted(_any_of(stems.first(corpus.bound)), _any_of(pairs.first(corpus.bound))),
        Wanted(_any_of(stems.all), _any_of(pairs.all)),
    )
    return [query for query in dict.fromkeys(queries) if query.stems or query.grams] or [Wanted("", "")]


class _Rarest:
    """Of combinations of terms those that occur, the rarest first."""

    def __init__(self, counts: dict[tuple[str, ...], int]) -> None:
        self._counts = counts
        self.all = sorted((texts for texts, count in counts.items() if count), key=lambda texts: (counts[texts], texts))

    def within(self, bound: int) -> list[tuple[str, ...]]:
        """As many as occur no more than *bound* times together."""
        totals = accumulate(self._counts[texts] for texts in self.all)
        return [texts for texts, total in zip(self.all, totals, strict=True) if total <= bound]

    def first(self, bound: int) -> list[tuple[str, ...]]:
        """The same, but at least one."""
        return self.within(bound) or self.all[:1]

    def together(self) -> list[tuple[str, ...]]:
        """The rarest one together with each of the others; alone if it is."""
        return [self.all[0] + other for other in self.all[1:]] or self.all


def _any_of(combinations: Iterable[tuple[str, ...]]) -> str:
    """A query of text search. Inside quotes nothing is syntax."""
    return " | ".join("(" + " & ".join(map(quoted, texts)) + ")" for texts in combinations)


def quoted(text: str) -> str:
    """One word as a query of text search."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
