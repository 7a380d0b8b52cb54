"""The corpora of what people type are whole: a mistake in them would count as one of the search."""

from __future__ import annotations

import re

import pytest

from tests.tools.eval.people.__main__ import Answer
from tests.tools.eval.people.corpora import FOLDER, KINDS, NONE, SHARES_NO_WORD, Query, corpora

ALL = corpora()
each = pytest.mark.parametrize("corpus", ALL, ids=lambda corpus: corpus.name)


def test_there_are_as_many_as_promised():
    assert len(ALL) == 12
    assert sum(len(corpus.queries) for corpus in ALL) >= 400
    assert all(20 <= len(corpus.memories) <= 50 for corpus in ALL)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 150_000


def test_every_kind_is_there_and_every_one_that_is_there_is_known():
    assert {query.kind for corpus in ALL for query in corpus.queries} == set(KINDS)
    assert set(KINDS) > SHARES_NO_WORD


@each
def test_the_expected_keys_exist(corpus):
    expected = set().union(*(query.expected for query in corpus.queries))

    assert expected <= {memory.key for memory in corpus.memories}


@each
def test_nothing_is_expected_of_the_kind_that_says_so_and_of_no_other(corpus):
    assert [query for query in corpus.queries if (query.kind == NONE) == bool(query.expected)] == []


@each
def test_no_query_and_no_memory_is_there_twice(corpus):
    texts = [query.text for query in corpus.queries]
    contents = [memory.content for memory in corpus.memories]

    assert sorted(texts) == sorted(set(texts))
    assert sorted(contents) == sorted(set(contents))


@each
def test_no_key_gives_its_query_away(corpus):
    """Keys are searched, too. Words and questions may be those of a key, as they often are."""
    given_away = [
        (query.text, key)
        for query in corpus.queries
        if query.kind not in {"words", "question"}
        for key in query.expected
        if not _words(query.text).isdisjoint(_words(key))
    ]

    assert given_away == []


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{2,}", text.casefold()))


@pytest.mark.parametrize(
    ("expected", "found", "first", "among_three"),
    [
        ("tea", ["tea", "rent"], True, True),
        ("tea", ["rent", "dog", "tea"], False, True),
        ("tea", ["rent", "dog", "cat", "tea"], False, False),
        ("tea", [], False, False),
        (None, [], True, True),
        (None, ["tea"], False, False),
    ],
)
def test_an_answer_is_right_if_an_expected_key_comes_soon_enough(expected, found, first, among_three):
    answer = Answer("any", Query("茶", "short", frozenset({expected} if expected else ())), found)

    assert (answer.among(1), answer.among(3)) == (first, among_three)
