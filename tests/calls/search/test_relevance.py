"""Relevance: how well a result fits, comparable between responses."""

from __future__ import annotations

import time

import pytest

from muniment_server.search.ranking import Corpus, QueryTerms, Term
from muniment_server.search.relevance import FITS, Relevance
from tests.support.answers import CONFIDENTIAL, PUBLIC, invalid


def relevance(query, *terms, stop_words=()):
    return Relevance(QueryTerms(query), Corpus(chunks=100, stems=1000, grams=10_000), terms, set(stop_words))


def by_words(query, text, **known):
    return relevance(query, **known).of(text, stems=0, similarity=0)


def fits(session, query, **fields):
    return {one.memory.key: one.relevance for one in session.search_memories(query=query, **fields).results}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cello", "She plays the cello."),
        ("Soren", "Søren"),
        ("喝茶", "用户喜欢喝茶"),
        ("ยา", "เขาแพ้ยา"),
        ("52,000", "52000"),
    ],
)
def test_a_word_that_the_text_contains_fits_in_full(query, text):
    assert by_words(query, text) == 1


def test_a_word_that_is_only_similar_fits_by_the_square_of_the_share_of_its_grams():
    assert by_words("hello", "She plays the cello.") == pytest.approx(0.25)
    assert by_words("refridgerator", "the refrigerator") > FITS


@pytest.mark.parametrize("query", ["пациентами", "inżynierka", "pasaportum"])
def test_another_form_of_a_long_word_fits_by_the_square_of_the_share_of_its_beginning(query):
    text = {"пациентами": "пациента", "inżynierka": "inżynier", "pasaportum": "pasaport"}[query]

    assert by_words(query, text) == pytest.approx(0.64)
    assert by_words("bridge", "bride") < FITS


@pytest.mark.parametrize(("query", "text"), [("爸爸喜欢什么", "爸爸喜欢喝茶"), ("犬は雷が苦手", "犬の名前、雷が苦手")])
def test_a_question_without_spaces_fits_by_the_share_of_its_grams(query, text):
    assert by_words(query, text) == pytest.approx(0.6)


def test_a_short_word_weighs_less():
    assert by_words("w zebra", "zebra") == pytest.approx(5 / 6)
    assert by_words("17 zebra", "zebra") == pytest.approx(0.5)


def test_a_query_of_a_thousand_words_is_compared_in_little_time():
    """Each text took 20 ms of the worker's time, and a search compares up to 120."""
    known = relevance("".join(map(chr, range(0x1F600, 0x1F9E8))))
    begun = time.process_time()

    for _ in range(1000):
        known.of("some text", stems=0, similarity=0)

    assert time.process_time() - begun < 5


def test_a_part_of_the_words_fits_by_their_weight():
    rare, frequent = Term("_zeb", 1, is_gram=True), Term("_whe", 60, is_gram=True)

    assert by_words("zebra wheel", "zebra") == pytest.approx(0.5)
    known = relevance("zebra wheel", rare, frequent)
    assert known.of("zebra", stems=0, similarity=0) > 0.8 > 0.2 > known.of("wheel", stems=0, similarity=0)


def test_a_stop_word_that_occurs_nowhere_does_not_count():
    assert by_words("where zebra", "zebra", stop_words={"where"}) == 1
    assert by_words("where", "zebra", stop_words={"where"}) == 0


def test_a_word_of_the_only_item_is_not_frequent(at):
    session = at(PUBLIC)
    session.save_memory(key="build", content="The compiler is done.")

    assert fits(session, "is the compiler finished?")["build"] > FITS


def test_one_stem_of_a_word_is_enough():
    stems = [Term("run", 3, is_gram=False, place=1), Term("running", 0, is_gram=False, place=1)]

    assert relevance("running", *stems).of("runs", stems=0b01, similarity=0) == 1


def test_an_embedding_adds_what_words_do_not_say():
    known = relevance("zebra wheel")

    assert known.of("", stems=0, similarity=250_000) == 0
    assert known.of("", stems=0, similarity=500_000) == pytest.approx(0.5)
    assert known.of("zebra", stems=0, similarity=500_000) == pytest.approx(0.75)
    assert known.of("", stems=0, similarity=900_000) == 1


def test_it_does_not_depend_on_the_other_results(at):
    session = at(PUBLIC)
    session.save_memory(key="near", content="She plays the cello.")

    alone = fits(session, "hello")
    session.save_memory(key="exact", content="He said hello.")

    assert alone["near"] < FITS
    assert fits(session, "hello") == {"exact": 1, "near": pytest.approx(alone["near"])}
    assert fits(session, "hello", min_relevance=FITS) == {"exact": 1}
    assert fits(session, "hello", min_relevance=1, max_results=1) == {"exact": 1}


def test_what_fits_less_does_not_crowd_out_what_fits(at):
    """The order is not that of relevance: texts with a coded token of the query come first."""
    session = at(PUBLIC)
    session.save_memory(key="both", content="A zebra and tea.")
    for number in range(5):
        session.save_memory(key=f"coded {number}", content="It is a.1 again.")

    assert "both" not in fits(session, "tea zebra a.1", max_results=5)
    assert list(fits(session, "tea zebra a.1", min_relevance=0.5, max_results=1)) == ["both"]


def test_a_text_that_has_the_query_as_it_is_fits_in_full(at):
    session = at(PUBLIC)
    session.save_memory(key="wifi", content="the password is qz@2019")

    assert fits(session, "qz@2019") == {"wifi": 1}


def test_notes_and_passages_have_it(at):
    session = at(PUBLIC)
    session.add_note(content="She plays the cello.")
    session.store_passage(content="She plays the cello.")

    for search in (session.search_notes, session.search_passages):
        assert [one.relevance for one in search(query="cello").results] == [1]
        assert search(query="hello", min_relevance=FITS).results == []
        assert search(query="cello", min_relevance=FITS).results != []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_least_relevance_outside_0_to_1_is_refused(at, share):
    assert invalid(at(PUBLIC).search_memories, query="tea", min_relevance=share) == ["min_relevance"]


def test_c34_it_is_the_same_whatever_is_above(at):
    low, high = at(PUBLIC), at(CONFIDENTIAL)
    low.save_memory(key="a", content="the zebra and the tea")
    low.save_memory(key="b", content="the zebra and the wheel")
    before = fits(low, "a zebra on a wheel")

    for number in range(20):
        high.save_memory(key=f"c{number}", content="wheel wheel")

    assert fits(low, "a zebra on a wheel") == before
    assert fits(high, "a zebra on a wheel")["a"] > before["a"]
