"""What people type finds a text by its grams: parts of words, symbols, other spellings, in many scripts."""

from __future__ import annotations

import pytest

from muniment_server.search.exactness import Exactness
from muniment_server.search.grams import PREFIX, evidence_of, grams, words

WITHOUT_SPACES = {
    "chinese": "用户喜欢喝茶",
    "japanese": "猫が二匹いる",
    "thai": "เขาแพ้ยา",
    "khmer": "ខ្ញុំចូលចិត្ត",
    "korean": "고양이두마리",
}
PARTS = [
    ("القطة نائمة", "قطة"), ("סגרתי את המפתח", "מפתח"), ("கனமழை", "மழை"), ("Straßenbahnhaltestelle", "bahn"),
    ("грузоподъёмность", "подъ"), ("cartoon", "art"), ("νερομπογιά", "μπο"),
]  # fmt: skip
SYMBOLS = [
    ("Party 🎂🎉", "🎂"), ("Price is 5 € a unit", "€"), ("next → step", "→"), ("Thumbs 👍🏽 up", "👍"), ("with ❤️", "❤"),
    ("flag 🇩🇪 here", "🇩🇪"), ("crew 👩‍🚀", "👩‍🚀"), ("costs $5", "$"), ("C++", "++"),
]  # fmt: skip
NOT_SYMBOLS = [("crew 👩‍🚀", "🚀"), ("flag 🇩🇪", "🇩🇰"), ("Price is 5 $", "€")]
SPELLINGS = [
    ("getUserById caches", "get user by id"), ("getUserById caches", "get_user_by_id"),
    ("max_retries is 5", "maxRetries"), ("HTTPServerFactory", "server factory"),
    ("Flight LH 456", "LH456"), ("Flight LH456", "LH 456"),
    ("52,000 euros", "52000"), ("52.000 Euro", "52000"), ("12 345 678", "12345678"), ("1'250 Franken", "1250"),
    ("the wi-fi is down", "wifi"), ("the wifi is down", "wi-fi"), ("call +49 151 2345678", "491512345678"),
    ("due 2025-11-03", "03.11.2025"), ("am 3.11.2025", "2025-11-03"), ("১২৩", "123"), ("٣٤٥", "345"), ("３００", "300"),
]  # fmt: skip
FOLDED = [
    ("Søren", "Soren"), ("Łódź", "Lodz"), ("Größe", "Groesse"), ("Größe", "Grosse"), ("Groesse", "Größe"),
    ("Ærø", "aero"), ("ırmak", "irmak"), ("Straße", "strasse"),
    ("דָּנִיאֵל", "דניאל"), ("مُحَمَّد", "محمد"), ("كيك", "کیک"),
    ("می‌خواهم", "میخواهم"), ("إسلام", "اسلام"), ("مدرسة", "مدرسه"),
    ("क़लम", "कलम"), ("カタカナ", "かたかな"), ("ｶﾀｶﾅ", "カタカナ"),
    ("ΛΌΓΟΣ", "λογος"),    ("ёлка", "елка"),
]  # fmt: skip


def finds(text: str, query: str) -> bool:
    """Whether a word of *query* has evidence in the index of *text*."""
    indexed = grams(text)

    def has(gram: str) -> bool:
        if gram.endswith(PREFIX):
            return any(one.startswith(gram.removesuffix(PREFIX)) for one in indexed)
        return gram in indexed

    return any(all(map(has, combination)) for _, word in words(query) for combination in evidence_of(word))


@pytest.mark.parametrize("text", WITHOUT_SPACES.values(), ids=WITHOUT_SPACES)
def test_every_part_of_a_text_without_spaces_is_found(text):
    parts = {text[start:end] for start in range(len(text)) for end in range(start + 1, len(text) + 1)}
    assert [part for part in parts if words(part) and not finds(text, part)] == []


@pytest.mark.parametrize(("text", "query"), [*PARTS, *SYMBOLS, *SPELLINGS, *FOLDED])
def test_what_people_type_is_found(text, query):
    assert finds(text, query)
    assert not finds("something else entirely", query)


@pytest.mark.parametrize(("text", "query"), NOT_SYMBOLS)
def test_a_sequence_is_one_symbol(text, query):
    assert not finds(text, query)


@pytest.mark.parametrize("query", ["team", "tear", "seat"])
def test_parts_that_words_share_by_chance_are_none(query):
    assert not finds("teapot", query)


def test_a_mark_that_repeats_is_no_word_by_itself():
    assert finds("担当の佐々木さん", "佐々木")
    assert not finds("人々は時々募金をする", "佐々木")


def test_characters_of_a_short_word_may_stand_apart():
    assert finds("她养了两只猫", "养猫")
    assert not finds("她养了两只狗", "养猫")


@pytest.mark.parametrize(
    "text", ["a" * 131_072, "1" * 131_072, "1 " * 65_536, "a-" * 65_536, "é" * 60_000, "(" * 131_072, "aB" * 65_536]
)
def test_words_take_time_in_proportion_to_the_text(text):
    """Steps that take the square of it would not end within the test's limit."""
    assert isinstance(words(text), list)


def test_a_token_of_many_parts_has_no_words_in_it():
    assert [word for _, word in words("9f8e7d6c5b4a")] == ["9f8e7d6c5b4a"]


EXACT = [
    ("libfoo 1.2.3", "We pinned libfoo to v1.2.3.", "The gateway is at 1.2.30, libfoo 2", 1),
    ("dog bites man", "the dog bites man story", "the man bites dog story", 3),
    ("dog bites man", "dog, bites: man", "the man bites dog story", 2),
    ("error 500 on page 12?", "Error 500 on page 12", "error 12 on page 500", 3),
    ("C++", "he writes C++", "he writes C", 3),
    ("喝茶 早上", "早上 喝茶 早上", "早上喝茶", 3),
    ("the cat, slept", "and the dog; the cat slept", "the dog slept, the cat ran", 2),
    ("and, cat", "dog and cat", "the dog ran, and the cat slept", 2),
    ("Größe 42", "die GRÖSSE 42 passt", "Größe 421", 3),
]


@pytest.mark.parametrize(("query", "exact", "other", "how"), EXACT)
def test_a_text_that_has_the_query_as_it_is_spelled_is_more_exact(query, exact, other, how):
    exactness = Exactness(query)

    assert exactness.distinguishes
    assert (exactness.rank_of(exact), exactness.rank_of(other)) == (how, 0)


def test_all_texts_are_equally_exact_for_one_plain_word():
    assert not Exactness("whale").distinguishes
    assert not Exactness("茶").distinguishes
