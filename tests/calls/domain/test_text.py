"""Names, tags, contents and queries at the boundary."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from random import Random
from typing import get_args
from unittest import mock

import pytest

import muniment_server
from muniment_server.domain import text, unicode, unicode_table
from muniment_server.domain.errors import FieldViolation, InvalidArgument

COMPOSED = "க\u0bca"
"""Tamil KA with the vowel sign O in one code point."""
DECOMPOSED = "க\u0bc6\u0bbe"
"""The same text, with the vowel sign in its two halves."""


def violation_of(function, *arguments, **named):
    """The one rule that *function* says is broken."""
    with pytest.raises(InvalidArgument) as caught:
        function(*arguments, **named)
    (violation,) = caught.value.violations
    return violation


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("e\u0301", "é"),
        (DECOMPOSED, COMPOSED),
        ("\u212b", "Å"),  # the Ångström sign
        ("ﬁ", "ﬁ"),  # compatibility forms are not canonical ones: they stay
    ],
)
def test_a_key_is_kept_in_nfc(given, kept):
    assert text.key(given) == kept


@pytest.mark.parametrize(
    "key",
    [
        "a", "Plan", "plan", "two words", "நினைவு", "க்\u200dஷ", "می\u200cخواهم", "👩\u200d💻", "%", "_",
        "a'b\"c\\d", "é" * 256, "🩷 list", "🫨", "\U0001faff", "\U00010d4e", "\U00016121",
    ],
)  # fmt: skip
def test_a_key_of_any_script_is_kept_as_it_is(key):
    assert text.key(key, is_new=True) == key


@pytest.mark.parametrize(
    ("character", "why"),
    [
        ("\0", "U+0000"), ("\n", "line feed"), ("\x1f", "unit separator"), ("\x7f", "delete"), ("\x85", "C1"),
        ("\u200b", "zero width space"), ("\u200e", "left-to-right mark"), ("\u202e", "right-to-left override"),
        ("\u2066", "isolate"), ("\u2028", "line separator"), ("\u2029", "paragraph separator"),
        ("\u2060", "word joiner"), ("\ufeff", "byte order mark"), ("\u00ad", "soft hyphen"),
        ("\U000e0041", "tag"), ("\u0378", "unassigned"), ("\ufdd0", "noncharacter"), ("\U0010ffff", "noncharacter"),
    ],
)  # fmt: skip
def test_a_key_with_an_invisible_or_unassigned_character_is_refused(character, why):
    violation = violation_of(text.key, f"a{character}b", is_new=True)

    assert violation == FieldViolation("key", "must not contain control, format or unassigned characters"), why


@pytest.mark.parametrize("name", ["a\u0378", "\U000e0fff", "🩷"])
def test_an_unassigned_character_is_refused_only_where_a_name_is_saved(name):
    """A server that knows a later Unicode may have saved it: it can be read and deleted."""
    assert [text.key(name), text.key_prefix(name), text.tag(name, field="tag")] == [name] * 3
    assert text.label("a\u0378") == "a\u0378"
    assert violation_of(text.label, "a\u0378", is_new=True).field == "label"


@pytest.mark.parametrize("key", [" a", "a ", "\u00a0a", "a\u3000", " "])
def test_a_key_with_a_leading_or_trailing_space_is_refused(key):
    assert violation_of(text.key, key).field == "key"


def test_an_empty_key_is_refused():
    assert violation_of(text.key, "") == FieldViolation("key", "must not be empty")


def test_the_length_of_a_key_is_counted_in_code_points_after_nfc():
    assert len(text.key(DECOMPOSED * 128)) == 256
    assert violation_of(text.key, "a" * 257) == FieldViolation("key", "must be at most 256 code points")


def test_keys_are_case_sensitive():
    assert text.key("Plan") != text.key("plan")


def test_tags_are_composed_trimmed_and_deduplicated_in_the_order_given():
    assert text.tags([" b ", "a", "b", DECOMPOSED, COMPOSED, "A"]) == ["b", "a", COMPOSED, "A"]


def test_the_tag_that_breaks_a_rule_is_named():
    assert violation_of(text.tags, ["fine", "a\u202eb"]).field == "tags[1]"


@pytest.mark.parametrize(("tag", "refused"), [("t" * 64, False), ("t" * 65, True), (" " * 3, True), ("", True)])
def test_a_tag_has_1_to_64_code_points(tag, refused):
    if refused:
        assert violation_of(text.tags, [tag]).field == "tags[0]"
    else:
        assert text.tags([tag]) == [tag]


@pytest.mark.parametrize("content", [DECOMPOSED, " \n\t ", "\u202e\ufeff\x01", "\r\n", "e\u0301"])
def test_content_is_not_touched(content):
    assert text.content(content) == content


def test_content_with_u0000_is_refused():
    assert violation_of(text.content, "a\0b") == FieldViolation("content", "must not contain U+0000")


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\0", " \0 "])
def test_a_blank_query_is_refused(query):
    assert violation_of(text.query, query) == FieldViolation("query", "must not be blank")


def test_u0000_separates_the_words_of_a_query():
    assert text.query("blue\0whale") == "blue whale"


@pytest.mark.parametrize("given", ["a\0b", "a\nb", "\x9b"])
def test_text_for_people_has_no_control_characters(given):
    assert violation_of(text.plain, given, field="reason").field == "reason"


def test_what_is_kept_is_stable():
    """A name as it is kept is kept unchanged a second time."""
    for name in ("e\u0301", DECOMPOSED, "\u212b", "가"):
        assert text.key(text.key(name)) == text.key(name) == unicodedata.normalize("NFC", name)


def test_a_key_prefix_obeys_the_rules_of_a_key_but_may_end_in_a_space():
    assert [text.key_prefix(given) for given in ("", "a ", "e\u0301")] == ["", "a ", "\u00e9"]
    for given in (" a", "a\n", "\u200e", "x" * 257):
        with pytest.raises(InvalidArgument):
            text.key_prefix(given)


@pytest.mark.parametrize(
    ("prefix", "following"),
    [
        ("", "\U0010ffff"),
        ("a\U0010ffff", "a\U0010ffff\U0010ffff"),
        ("a", "b"),
        ("k\ud7ff", "k\ue000"),
        ("\U0001f600", "\U0001f601"),
    ],
)
def test_after_a_prefix_comes_the_next_character_in_the_order_of_bytes(prefix, following):
    assert text.after_prefix(prefix) == following
    assert f"{prefix}\U0010fffd".encode() < following.encode()


def test_normalization_puts_all_combining_marks_in_order_as_unicodedata_does() -> None:
    """The pattern names each of them: those that it lacked would take the square of their number."""
    letters = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]
    for seed in range(20):
        marks = "".join(Random(seed).sample(letters, len(letters)))
        for form in get_args(unicode.Form):
            assert unicode.normalized(form, f"o{marks}é{marks}") == unicodedata.normalize(form, f"o{marks}é{marks}")
            assert _in_order(marks, form), "unicodedata gets marks out of order, and sorts them one by one"


def _in_order(marks: str, form: unicode.Form) -> bool:
    """Whether what unicodedata is given for *marks* is in order."""
    with mock.patch.object(unicodedata, "normalize", lambda _, given: given):
        classes = [unicodedata.combining(mark) for mark in unicode.normalized(form, marks)]
    return classes == sorted(classes)


def test_no_text_of_a_caller_is_normalized_in_another_way() -> None:
    """A memory of 128 KiB of marks would hold the interpreter lock for seconds, a key for a tenth of a second."""
    allowed = {"domain/unicode.py", "domain/prompt.py"}  # the prompt normalizes character by character
    server = Path(muniment_server.__file__).parent
    assert allowed == {
        str(file.relative_to(server)) for file in server.rglob("*.py") if "unicodedata.normalize(" in file.read_text()
    }


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("\U000105d2\u0307", "\U000105c9"),  # Todhri
        ("\U000105d2\u0307\u0323", "\U000105c9\u0323"),  # a dot below is no obstacle
        ("\U000105d2\u0301\u0307", "\U000105d2\u0301\u0307"),  # an accent above is one
        ("\U0001611e\U0001611e\U0001611f", "\U00016126"),  # Gurung Khema: three make one
        ("\U00016d63\U00016d67\U00016d67", "\U00016d6a"),  # Kirat Rai
        ("e\U0001e4ee\u0301", "é\U0001e4ee"),  # a mark of Nag Mundari stays below
        ("a\U0001e4ef\U0001e4ee", "a\U0001e4ee\U0001e4ef"),
        ("\U000105d2\u0307\u1100\u1161", "\U000105c9가"),
    ],
)
def test_characters_newer_than_this_python_are_put_in_nfc(given, stored):
    assert text.key(given, is_new=True) == stored == text.key(stored)


def test_the_table_knows_what_this_python_knows():
    """If it fails: `make unicode` writes a table for the newest Unicode."""
    table, python = (
        tuple(map(int, version.split("."))) for version in (unicode_table.VERSION, unicodedata.unidata_version)
    )
    assert table >= python
    for character in map(chr, range(sys.maxunicode + 1)):
        if (kind := unicodedata.category(character)) not in ("Cn", "Cs"):
            assert unicode.category(character) == kind
            assert unicode.normalized("NFC", f"a{character}\u0323") == unicodedata.normalize(
                "NFC", f"a{character}\u0323"
            )
