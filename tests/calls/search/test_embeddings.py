"""Embeddings as vectors of integers."""

from __future__ import annotations

import math
import unicodedata

from muniment_server.search.embeddings import (
    DIMENSIONS,
    FLOOR,
    MAX_CHARS,
    MAX_MATCHES,
    MEAN,
    SEMANTIC_WEIGHT,
    readable,
    scores,
    signs,
    vector_of,
)


def test_a_vector_has_whole_components_and_a_length_of_about_a_thousand():
    vector = vector_of([0.01 * (number % 7) for number in range(DIMENSIONS)])

    assert all(isinstance(component, int) for component in vector)
    assert abs(math.hypot(*vector) - 1000) < 10


def test_the_mean_of_all_texts_is_subtracted():
    two = [vector_of([common + sign * (number % 3) for number, common in enumerate(MEAN)]) for sign in (1, -1)]

    assert max(abs(one + other) for one, other in zip(*two, strict=True)) <= 1


def test_signs_are_bits():
    assert signs([-3, 0, 7]) == "001"


def test_an_embedder_gets_no_nul_no_lone_surrogate_and_no_end_of_a_long_text():
    assert readable("a\0b") == "a b"
    assert readable("a\ud800b") == "a?b"
    assert len(readable("a" * 100_000)) == MAX_CHARS


def test_an_embedder_gets_text_in_nfkc():
    """U+FDFA becomes 18 characters, which are also cut at the limit."""
    read = readable("a\ufdfa" * 500)

    assert read == unicodedata.normalize("NFKC", read)
    assert len(read) == MAX_CHARS


def test_the_most_similar_gets_the_full_score_and_a_non_match_none():
    assert scores([]) == []
    assert scores([FLOOR]) == []
    assert scores([FLOOR + 1]) == [SEMANTIC_WEIGHT]
    assert scores([FLOOR + 200, FLOOR + 100, FLOOR, -5]) == [SEMANTIC_WEIGHT, SEMANTIC_WEIGHT // 2]


def test_the_most_similar_match_even_if_all_are_equally_similar():
    assert scores([FLOOR + 1] * (MAX_MATCHES + 1)) == [SEMANTIC_WEIGHT] * MAX_MATCHES
