"""Unicode's rules for names, by a table that the server brings.

Pythons differ in the version of Unicode that they know. A name saved under one must be found under all others, so
`unicode_table` adds what the oldest Python that runs the server lacks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from functools import cache
from typing import Literal, TypeAlias

from muniment_server.domain.unicode_table import CATEGORIES, CLASSES, PAIRS

Form: TypeAlias = Literal["NFC", "NFKC", "NFKD"]

_RESERVED_FOR_EMOJI = re.compile("[\U0001f000-\U0001faff\U0001fc00-\U0001fffd]")
"""Later emoji are assigned here. They have no canonical decompositions."""


def _ranges(table: str) -> list[tuple[int, int, str]]:
    entries = re.findall(r"(\w+)-(\w+)=(\w+)", table)
    return [(int(first, 16), int(last, 16), value) for first, last, value in entries]


_CATEGORIES = _ranges(CATEGORIES)
_CLASSES = {chr(code): int(value) for first, last, value in _ranges(CLASSES) for code in range(first, last + 1)}
_WHOLES = {
    chr(int(first, 16)) + chr(int(second, 16)): chr(int(whole, 16))
    for whole, first, second in re.findall(r"(\w+)=(\w+)\+(\w+)", PAIRS)
}
_HALVES = {whole: halves for halves, whole in _WHOLES.items()}
_CHANGED = frozenset({*_CLASSES, *_HALVES, *(halves[0] for halves in _WHOLES)})
"""The characters of the table that normalization may change."""


def category(character: str) -> str:
    """The general category. Unassigned characters that are reserved for emoji are symbols (So)."""
    kind = unicodedata.category(character)
    if kind != "Cn":
        return kind
    place = bisect_left(_CATEGORIES, ord(character), key=lambda each: each[1])
    if place < len(_CATEGORIES) and _CATEGORIES[place][0] <= ord(character):
        return _CATEGORIES[place][2]
    return "So" if _RESERVED_FOR_EMOJI.match(character) else "Cn"


def normalized(form: Form, text: str) -> str:
    """*text* in a normalization form: all texts of callers are, in linear time, except that runs of marks are sorted.

    Only NFC is the same under every Python, so names are stored in it. The search index is made with NFKD: after a
    change of Python, reindex.
    """
    if text.isascii():
        return text
    if form == "NFC" and not _CHANGED.isdisjoint(text):
        return _composed(_decomposed(text))
    return unicodedata.normalize(form, _ordered(text))


def _decomposed(text: str) -> str:
    while (halved := "".join(_HALVES.get(letter, letter) for letter in text)) != text:
        text = halved
    return _ordered(unicodedata.normalize("NFD", _ordered(text)), least=2)


def _ordered(text: str, *, least: int = 9) -> str:
    """*text* with combining marks in order, if *least* are in a row: unicodedata takes the square of their number."""
    return _marks_in_a_row(least).sub(lambda marks: "".join(sorted(marks[0], key=_combining_class)), text)


@cache
def _marks_in_a_row(least: int) -> re.Pattern[str]:
    """Matches characters whose order normalization may change. All of them are below U+1F000."""
    marks = "".join(filter(_combining_class, map(chr, range(0x300, 0x1F000))))
    return re.compile(f"(?![\0-\u02ff])[{marks}]{{{least},}}")  # what most characters are fails at once


def _combining_class(character: str) -> int:
    return _CLASSES.get(character) or unicodedata.combining(character)


def _composed(decomposed: str) -> str:
    """The canonical composition: The Unicode Standard, section 3.11, definition D117."""
    composed: list[str] = []
    starter, last = -1, 0
    for character in decomposed:
        order = _combining_class(character)
        if starter >= 0 and (last < order or last == 0):
            whole = _whole(composed[starter] + character)
            if len(whole) == 1:
                composed[starter] = whole
                continue
        if order == 0:
            starter = len(composed)
        last = order
        composed.append(character)
    return "".join(composed)


def _whole(pair: str) -> str:
    return _WHOLES.get(pair) or unicodedata.normalize("NFC", pair)
