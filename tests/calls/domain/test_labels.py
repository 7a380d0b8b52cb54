"""Labels of blocks: they stand in a heading of the prompt, so little is let in."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from muniment_server.domain import text
from muniment_server.domain.errors import InvalidArgument

COMPOSED, DECOMPOSED = "க\u0bca", "க\u0bc6\u0bbe"


def rule_of(label):
    """The one rule that the label breaks."""
    with pytest.raises(InvalidArgument) as caught:
        text.label(label, is_new=True)
    (violation,) = caught.value.violations
    assert violation.field == "label"
    return violation.rule


@pytest.mark.parametrize(
    "label",
    [
        "a", "Z", "_", "0", "current_state", "a.b-c_d", "_-.", "நினைவு", "ひらがな", "漢字", "עברית", "العربية", "ไทย",
        "é", "١٢٣", "𝟘", "ǅ", "ʰ", "a" * 64, "நி" * 32,
    ],
)  # fmt: skip
def test_letters_marks_and_digits_of_any_script_are_accepted(label):
    assert text.label(label, is_new=True) == label


@pytest.mark.parametrize(
    ("given", "kept"), [("e\u0301", "é"), (DECOMPOSED, COMPOSED), ("\u212b", "Å"), ("\u1112\u1161", "하")]
)
def test_a_label_is_kept_in_nfc(given, kept):
    assert text.label(given) == kept


def test_the_length_of_a_label_is_counted_in_code_points_after_nfc():
    assert len(text.label(DECOMPOSED * 32)) == 64
    assert rule_of(COMPOSED * 32 + "a") == "must be at most 64 code points"
    assert rule_of("a" * 65) == "must be at most 64 code points"


@pytest.mark.parametrize(
    "character",
    [
        "#", " ", "/", ":", "*", "`", "%", "\\", "'", "😀", "§", "═", "²", "½", "Ⅷ", "\u00b7", "‿", "–", "\u00a0",
        "\ufffd",
    ],
)  # fmt: skip
def test_other_characters_are_refused_anywhere(character):
    for label in (f"a{character}", f"a{character}b", character):
        assert rule_of(label) == "must be letters, marks, digits, `_`, `.` and `-`"


@pytest.mark.parametrize(
    "character", ["\n", "\r", "\t", "\0", "\u2028", "\u202e", "\u200b", "\ufeff", "\u0378", "\U000e0041"]
)
def test_what_cannot_be_seen_is_refused(character):
    assert rule_of(f"a{character}") == "must not contain control, format or unassigned characters"


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_joiners_are_refused_too(joiner):
    """A key may have them; two labels that look alike would be two headings that look alike."""
    assert rule_of(f"க்{joiner}ஷ") == "must be letters, marks, digits, `_`, `.` and `-`"


@pytest.mark.parametrize(
    "character",
    ["\u3164", "\uffa0", "\u115f", "\u1160", "\u034f", "\u17b4", "\u180b", "\u180f", "\ufe00", "\ufe0f", "\U000e0100"],
)
def test_invisible_letters_and_marks_are_refused(character):
    """Two labels of one look would be two blocks."""
    for label in (f"a{character}", character):
        assert rule_of(label) == "must be letters, marks, digits, `_`, `.` and `-`"


@pytest.mark.parametrize("label", [".a", "-a", ".", "-", "\u0301a", "ிa", "\u20dda", "\u0e31"])
def test_a_label_does_not_begin_with_a_mark_or_punctuation(label):
    assert rule_of(label) == "must begin with a letter, a digit or `_`"


def test_an_empty_label_is_refused():
    assert rule_of("") == "must not be empty"


def test_labels_are_case_sensitive():
    assert text.label("Plan") != text.label("plan")


def _is_assigned(character):
    """Whether Unicode says what it is: one in eight characters. The others are unassigned, private or surrogates."""
    return unicodedata.category(character) not in {"Cn", "Co", "Cs"}


@pytest.mark.parametrize("assigned", [True, pytest.param(False, marks=pytest.mark.proof)])
def test_what_is_let_in_can_neither_end_a_line_nor_be_trimmed_nor_change_its_form(assigned):
    """Every character that Unicode has, after a letter."""
    for character in map(chr, range(sys.maxunicode + 1)):
        if _is_assigned(character) is not assigned:
            continue
        label = f"a{character}"
        try:
            kept = text.label(label, is_new=True)
        except InvalidArgument:
            continue
        assert kept.split() == kept.splitlines() == [kept]
        assert kept == unicodedata.normalize("NFC", kept)
        assert not set(kept) & set("#═§\\[]() ")
