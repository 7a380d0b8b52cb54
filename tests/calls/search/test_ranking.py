"""Which words and parts of words matches are looked for by."""

from __future__ import annotations

import pytest

from muniment_server.search.grams import words
from muniment_server.search.ranking import Candidates, Corpus, QueryTerms, Term, candidate_queries
from muniment_server.search.tsquery import any_of

CORPUS = Corpus(chunks=40_000, stems=400_000, grams=4_000_000)
"""Looked for first is what occurs in no more than 2,000 chunks."""


def looked_for(evidence=(), grams=(), **stems):
    terms = [Term(text, count, is_gram=False) for text, count in stems.items()]
    terms += [Term(text, count, is_gram=True) for text, count in grams]
    return candidate_queries(CORPUS, terms, evidence)


def test_the_rarest_words_come_first_then_all():
    assert looked_for(whale=1500, zebra=500, sea=600) == [
        Candidates((("zebra",), ("sea",)), ()),
        Candidates((("zebra",), ("sea",), ("whale",)), ()),
    ]


def test_pairs_of_frequent_words_come_first_then_the_rarest_word_then_all():
    assert looked_for(whale=9000, zebra=5000, sea=7000) == [
        Candidates((("zebra", "sea"), ("zebra", "whale")), ()),
        Candidates((("zebra",),), ()),
        Candidates((("zebra",), ("sea",), ("whale",)), ()),
    ]


def test_a_single_word_is_looked_up_however_frequent():
    assert looked_for(whale=9000) == [Candidates((("whale",),), ())]


def test_frequent_grams_wait_for_the_words():
    pairs = [("_wha", "whal"), ("zebr", "ebra")]
    grams = [("_wha", 9000), ("whal", 8000), ("zebr", 30), ("ebra", 20)]

    assert looked_for(pairs[:1], grams[:2], sea=10) == [
        Candidates((("sea",),), ()),
        Candidates((("sea",),), (("_wha", "whal"),)),
    ]
    assert looked_for(pairs, grams, sea=10)[0] == Candidates((("sea",),), (("zebr", "ebra"),))


def test_grams_alone_are_looked_up_however_frequent():
    assert looked_for([("展望",)], [("展望", 9000)]) == [Candidates((), (("展望",),))]


def test_a_term_that_does_not_occur_is_not_looked_up():
    assert looked_for([("_who", "whol")], [("_who", 5), ("whol", 0)], whale=0, zebra=1) == [
        Candidates((("zebra",),), ())
    ]
    assert looked_for(whale=0) == [Candidates((), ())]


@pytest.mark.parametrize(("evidence", "found"), [((), (("the",),)), ([("_wha", "whal")], ())])
def test_stop_words_are_looked_up_if_there_are_no_other_words(evidence, found):
    terms = [Term("the", 9000, is_gram=False, is_stop=True)]

    assert candidate_queries(CORPUS, terms, evidence) == [Candidates(found, ())]


@pytest.mark.parametrize(
    ("query", "common"),
    [
        ("hotel w Gdyni", "w"), ("πόσο κάνει το σπίτι", "το"), ("गेट की चाबी", "की"), ("猫 の 写真", "の"),
        ("ยา ที่ หมอให้", "ที่"),
    ],
)  # fmt: skip
def test_a_short_word_that_a_tenth_of_the_chunks_contain_is_common(query, common):
    terms = QueryTerms(query)
    few = dict.fromkeys(terms.grams, 9)
    many = dict.fromkeys(terms.grams, 10)
    corpus = Corpus(chunks=100, stems=1000, grams=10_000)

    assert terms.common(corpus, few) == frozenset()
    assert common in terms.common(corpus, many)
    assert all(len(word) <= 3 for word in terms.common(corpus, many))


def test_no_word_of_few_texts_is_common_and_no_name():
    counts = dict.fromkeys(["_tea", "tea_", "_jon", "jon_"], 2)

    assert QueryTerms("tea").common(Corpus(chunks=4, stems=40, grams=400), counts) == frozenset()
    many = dict.fromkeys(counts, 50)
    assert QueryTerms("did Jon like tea").common(Corpus(chunks=100, stems=40, grams=400), many) == {"tea"}


def test_a_common_word_is_looked_up_if_no_other_word_occurs():
    common, rare = Term("w", 9000, is_gram=False, is_common=True), Term("osak", 3, is_gram=False)
    evidence, of_common = [("_osa", "osak")], [("_w_",)]
    grams = [Term("_w_", 9000, is_gram=True)]

    assert candidate_queries(CORPUS, [common, rare, *grams], evidence, of_common) == [Candidates((("osak",),), ())]
    assert candidate_queries(CORPUS, [common, *grams], evidence, of_common)[-1] == Candidates((("w",),), (("_w_",),))


def test_a_character_expands_to_four_at_most():
    assert sum(len(word) for _, word in words("\ufdfa" * 100)) <= 400


def test_a_query_has_each_combination_in_brackets_and_each_term_in_quotes():
    assert any_of([("zebra", "sea"), ("whale",)]) == "('zebra' & 'sea') | ('whale')"
    assert any_of([("it's", "a\\b")]) == r"('it''s' & 'a\\b')"
    assert any_of([]) == ""
