"""From the words of a query to what its matches weigh, and which of them are looked for.

The score is BM25 of the stems, plus 0.3 times BM25 of the grams; stop words weigh 0.4 of a word. How often words
occur is counted over what the session may read, and over nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from muniment_server.domain.search.grams import evidence_of, grams_of, words

K1, B = 1.2, 0.75
STOP_WEIGHT = 0.4
GRAM_WEIGHT = 0.3
MOST_STEMS, MOST_GRAMS = 40, 128
"""Words and grams of a query that count, the first ones."""
MOST_LENDERS = 100
"""Hits that lend to their neighbours, the best ones."""
MOST_SAMPLED = 1000
"""Pieces in which words are counted first. Where a session may read no more, the counts are exact."""
MOST_GRAMS_SAMPLED = 250
"""Of more, those in which grams are counted: there are five times as many as words, and each weighs little."""
MOST_STEMS_COUNTED, MOST_GRAMS_COUNTED = 1000, 100
"""Pieces that may be looked at to count a stem, or a gram, exactly. The count of others is that of the sample."""
FEWEST_FIRST, PART_FIRST, MOST_FIRST = 1000, 20, 8000
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


FLOOR = K1 * (1 - B)
"""How much the first stem or gram lessens it."""


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
    """What to look for, first by the rarest words only, then by all.

    A bound leaves out words, never matches of a word: what is found must not hang on the order of rows.
    """
    said = {term.text: term.pieces for term in terms if not term.is_gram and not term.is_stop}
    stops = {term.text: term.pieces for term in terms if term.is_stop}
    if not said and not evidence:
        said = stops
    stems: dict[tuple[str, ...], int] = {(text,): count for text, count in said.items()}
    occurring = {term.text: term.pieces for term in terms if term.is_gram}
    pairs = {pair: min(occurring.get(gram, 0) for gram in pair) for pair in evidence}
    queries = (
        Wanted(_any_of(_rarest(stems, bound)), _any_of(_rarest(pairs, bound))) for bound in (corpus.bound, math.inf)
    )
    return list(dict.fromkeys(queries))


def _rarest(counts: dict[tuple[str, ...], int], bound: float) -> list[tuple[str, ...]]:
    """Of those that occur, the rarest, as long as they do not occur more than *bound* times together; at least one."""
    total = 0
    kept: list[tuple[str, ...]] = []
    for texts in sorted((texts for texts, count in counts.items() if count), key=lambda texts: (counts[texts], texts)):
        total += counts[texts]
        if kept and total > bound:
            break
        kept.append(texts)
    return kept


def _any_of(combinations: Iterable[tuple[str, ...]]) -> str:
    """A query of text search. Inside quotes nothing is syntax."""
    return " | ".join("(" + " & ".join(map(quoted, texts)) + ")" for texts in combinations)


def quoted(text: str) -> str:
    """One word as a query of text search."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
