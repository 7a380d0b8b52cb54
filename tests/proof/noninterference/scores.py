"""A second implementation of search, in pure Python: what each score must be, and a probe that compares them.

It is written from the decision records 5 and 6, for agents whose language is English, memories of one chunk, and the
words of `_STEMS`: it knows no other stems. It reads no table: it is given what there is at each level, and counts what
the session sees.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from muniment_server.domain.classification import Classification, Label
from tests.proof.noninterference.probes import Probed
from tests.proof.noninterference.replay import embedding_of
from tests.proof.noninterference.values import METHODS
from tests.proof.noninterference.worlds import World

_STEMS: Mapping[str, str] = {
    "whale": "whale",
    "whales": "whale",
    "budget": "budget",
    "budgets": "budget",
    "meeting": "meet",
    "meetings": "meet",
    "running": "run",
    "runs": "run",
    "garden": "garden",
    "gardens": "garden",
    "the": "the",
    "and": "and",
}
"""The words of memories and queries, and their stems in English."""
_STOP_WORDS = frozenset({"the", "and"})
_DATE = 3
"""The day, the month and the year of a memory are stems of it, too. No query has them."""
_K1, _B = 1.2, 0.75
_STOP, _GRAM = 0.4, 0.3
_SEMANTIC, _LEXICAL = 300_000, 700_000
_NO_MATCH = 150_000
"""The similarity that a match must exceed, in millionths."""
_UNRELATED, _THE_SAME = 250_000, 750_000
"""The similarities between which relevance rises."""
_SHORT, _LONG, _OTHERS = 3, 5, 100
_MANY = 4
"""From so many occurrences on, a word counts as if it occurred five times."""
_MEMORIES, _DELETED, _QUERIES = 40, 4, 15
_WORDS = sorted(_STEMS)
_KEYS = [f"{one} {other}" for one in _WORDS[:6] for other in _WORDS[6:]]
_ANSWER = GetMessageClass(METHODS["SearchMemories"].output_type)


@dataclass(frozen=True)
class Stored:
    """The live version of a memory at one level."""

    key: str
    content: str
    level: int

    @property
    def stems(self) -> Counter[str]:
        """How often each stem occurs, in the key and in the content."""
        return Counter(_STEMS[word] for word in f"{self.key} {self.content}".split())

    @property
    def grams(self) -> frozenset[str]:
        """The grams of its words."""
        return frozenset(gram for word in f"{self.key} {self.content}".split() for gram in _grams(word))


def scores_are_those_of_what_is_seen(world: World) -> None:
    """At every level, among memories at all levels, some of them deleted, and beside those of another agent."""
    rng = random.Random("scores")
    probed = Probed(world)
    alice, bob = ({level: probed.session(level, agent)[0] for level in Classification} for agent in ("alice", "bob"))
    for agent in ("alice", "bob"):
        probed.call(probed.host, "UpdateAgent", agent_id=agent, language="en")
    stored: dict[tuple[str, Classification], Stored] = {}
    for _ in range(_MEMORIES):
        level = rng.choice(list(Classification))
        one = Stored(rng.choice(_KEYS), " ".join(rng.choices(_WORDS, k=rng.randint(1, 12))), level)
        probed.call(alice[level], "SaveMemory", key=one.key, content=one.content)
        probed.call(bob[level], "SaveMemory", key=one.key, content=rng.choice(_WORDS))
        stored[one.key, level] = one
    for key, level in rng.sample(sorted(stored), _DELETED):
        probed.call(alice[level], "DeleteMemory", key=key)
        del stored[key, level]
    world.embed(Label.RESTRICTED.value)
    for level in Classification:
        for query in (" ".join(rng.sample(_WORDS, rng.randint(1, 3))) for _ in range(_QUERIES)):
            response = probed.call(alice[level], "SearchMemories", query=query, max_results=100).response
            answer: Any = _ANSWER.FromString(response)
            expected = expected_scores(list(stored.values()), level, query)
            assert {one.memory.key: one.score for one in answer.results} == pytest.approx(expected, abs=3e-6), query
            fit = {one.memory.key: one.relevance for one in answer.results}
            assert fit == pytest.approx(expected_relevance(list(stored.values()), level, query), abs=3e-6), query
            assert answer.semantic


def expected_scores(stored: Sequence[Stored], taint: int, query: str) -> dict[str, float]:
    """What a search of a session must find when every embedding has been made, by key."""
    seen = [one for one in stored if one.level <= taint]
    live = {one.key: one for one in sorted(seen, key=lambda one: one.level)}
    by_words = _lexical(seen, live, query)
    similar = _semantic(live, query)
    best = max(by_words.values(), default=0)
    found = {
        key: (round(_LEXICAL * by_words[key] / best) if key in by_words else 0) + similar.get(key, 0)
        for key in by_words.keys() | similar.keys()
    }
    ranked = sorted(found, key=lambda key: (-found[key], key))
    exact = sorted(ranked, key=lambda key: not _has(live[key], query))
    return {key: found[place] / 1e6 for key, place in zip(exact, ranked, strict=True)}


def expected_relevance(stored: Sequence[Stored], taint: int, query: str) -> dict[str, float]:
    """The relevance of each result, by key. It depends on what is seen, and not on the other results."""
    seen = [one for one in stored if one.level <= taint]
    live = {one.key: one for one in sorted(seen, key=lambda one: one.level)}
    by_words = _lexical(seen, live, query)
    similar = {key: one for key, one in _similarities(live, query).items() if one > _NO_MATCH}
    found = {}
    for key in by_words.keys() | similar.keys():
        text = f" {live[key].key} {live[key].content} "
        words = max(
            _share_of_stems(seen, live[key], query) if key in by_words else 0, _share_of_words(seen, text, query)
        )
        closeness = min(max((similar.get(key, 0) - _UNRELATED) / (_THE_SAME - _UNRELATED), 0), 1)
        found[key] = 1 if f" {query} " in text else 1 - (1 - words) * (1 - closeness)
    return found


def _share_of_stems(seen: Sequence[Stored], one: Stored, query: str) -> float:
    stems = dict.fromkeys(_STEMS[word] for word in query.split())
    weights = {stem: _weight_of_word(seen, sum(stem in other.stems for other in seen), stem) for stem in stems}
    return _part({stem: weight * (stem in one.stems) for stem, weight in weights.items()}, weights)


def _share_of_words(seen: Sequence[Stored], text: str, query: str) -> float:
    grams = {gram for word in text.split() for gram in _grams(word)}
    weights, matched = {}, {}
    for word in dict.fromkeys(query.split()):
        own = set(_asked_grams(word))
        weights[word] = _weight_of_word(seen, min(_holding(seen, gram) for gram in own), word)
        by_grams = sum(_is_in(gram, grams) for gram in own) / len(own)
        by_letters = max((_alike(word, other) for other in text.split()), default=0)
        share = 1 if word in text.split() else max(by_grams, by_letters) ** 2
        matched[word] = share
    best = {word: max(share for other, share in matched.items() if word in other) for word in matched}
    return _part({word: weights[word] * share for word, share in best.items()}, weights)


def _alike(word: str, other: str) -> float:
    """The share of the letters with which two long words begin."""
    begins = next((size for size in range(len(word), 0, -1) if other.startswith(word[:size])), 0)
    return begins / max(len(word), len(other)) if len(word) > _LONG and begins >= _LONG else 0


def _asked_grams(word: str) -> list[str]:
    """A word of three letters is looked for within words, too."""
    return [*_grams(word), *([f"{word}:*"] if len(word) == _SHORT else [])]


def _is_in(gram: str, grams: Collection[str]) -> bool:
    return any(one.startswith(gram[:-2]) for one in grams) if gram.endswith(":*") else gram in grams


def _holding(seen: Sequence[Stored], gram: str) -> int:
    return sum(_is_in(gram, one.grams) for one in seen)


def _weight_of_word(seen: Sequence[Stored], holding: int, word: str) -> float:
    """The weight of a word of a query. A stop word that does not occur has none."""
    known = max(holding, 1)
    rarity = min(len(word) / _LONG, 1) * math.log(1 + (len(seen) + _OTHERS - known + 0.5) / (known + 0.5))
    if word not in _STOP_WORDS:
        return rarity
    return _STOP * rarity if holding else 0


def _part(matched: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(matched.values()) / sum(weights.values()) if sum(weights.values()) else 0


def _has(stored: Stored, query: str) -> bool:
    """Whether the words of a query, if they are several, stand in a row: then the memory comes before the others."""
    return " " in query and f" {query} " in f" {stored.key} {stored.content} "


def _lexical(seen: Sequence[Stored], live: Mapping[str, Stored], query: str) -> dict[str, int]:
    """BM25 over stems and grams. All that is seen is counted, shadowed or not; what is shadowed is not found."""
    asked = dict.fromkeys(query.split())
    stems = dict.fromkeys(_STEMS[word] for word in asked)
    grams = dict.fromkeys(gram for word in asked for gram in _grams(word))
    pairs = [pair for word in asked if word not in _STOP_WORDS for pair in pairwise(_grams(word))]
    wanted = [stem for stem in stems if stem not in _STOP_WORDS]
    if not wanted and not pairs:
        wanted = list(stems)
    stem_slope = _slope(len(seen), sum(one.stems.total() + _DATE for one in seen))
    gram_slope = _slope(len(seen), sum(len(one.grams) for one in seen))
    found = {}
    for key, one in live.items():
        if not any(stem in one.stems for stem in wanted) and not any(one.grams.issuperset(pair) for pair in pairs):
            continue
        score = 0
        for stem in stems.keys() & one.stems.keys():
            times = one.stems[stem] if one.stems[stem] < _MANY else 5
            weight = _rarity(seen, sum(stem in other.stems for other in seen)) * (_STOP if stem in _STOP_WORDS else 1)
            score += round(weight * times / (times + _K1 * (1 - _B) + (one.stems.total() + _DATE) * stem_slope))
        for gram in grams.keys() & one.grams:
            weight = _rarity(seen, sum(gram in other.grams for other in seen)) * _GRAM
            score += round(weight / (1 + _K1 * (1 - _B) + len(one.grams) * gram_slope))
        found[key] = score
    return found


def _semantic(live: Mapping[str, Stored], query: str) -> dict[str, int]:
    """The similarities above the floor, scaled so that the highest gets the full score."""
    similarities = _similarities(live, query)
    best = max(similarities.values(), default=0)
    return {
        key: _SEMANTIC * (one - _NO_MATCH) // (best - _NO_MATCH) for key, one in similarities.items() if one > _NO_MATCH
    }


def _similarities(live: Mapping[str, Stored], query: str) -> dict[str, int]:
    asked = embedding_of(query)
    return {
        key: sum(one * other for one, other in zip(asked, embedding_of(f"{stored.key}: {stored.content}"), strict=True))
        for key, stored in live.items()
    }


def _slope(chunks: int, terms: int) -> float:
    return _K1 * _B * max(chunks, 1) / max(terms, 1)


def _rarity(seen: Sequence[Stored], holding: int) -> float:
    """The score of one occurrence of a stem, in millionths."""
    return 1e6 * (_K1 + 1) * math.log(1 + (len(seen) - holding + 0.5) / (holding + 0.5))


def _grams(word: str) -> list[str]:
    marked = f"_{word}_"
    return [marked[start : start + 4] for start in range(len(marked) - 3)]
