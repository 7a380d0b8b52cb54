"""Exactness: whether a text has a query as it is spelled, and not only its words.

Ranking compares bags of words. Of its best matches, those that have the whole query come first, then those that have
its words in a row, then those that have its tokens with digits or symbols, such as `1.2.3` or `C++`.
"""

from __future__ import annotations

import re

from muniment_server.domain.unicode import normalized
from muniment_server.search.grams import words

LOOKED_AT = 20
"""How many more matches than were asked for are looked at."""
_CODED = re.compile(r"\S*(?:\d[^\w\s]+\w|\w[^\w\s]+\d|[+<=>|~$#@_/\\])\S*")
_AT_THE_END = re.compile(r"[\s?!.,;:]+$")


class Exactness:
    """How exactly texts have one query: 3, 2 or 1, as above, or 0."""

    def __init__(self, query: str) -> None:
        plain = _AT_THE_END.sub("", _plain(query))
        coded = [token for token in map(_trimmed, plain.split()) if _CODED.fullmatch(token)]
        self._whole = _bounded(plain) if " " in plain or coded else None
        self._row = _row(query) if " " in plain else ""
        self._coded = [_bounded(token) for token in coded]

    @property
    def tells(self) -> bool:
        """Whether texts can differ: not for a query of one plain word."""
        return self._whole is not None

    def of(self, text: str) -> int:
        """That of one text."""
        plain = _plain(text)
        if self._whole is not None and self._whole.search(plain):
            return 3
        if self._row and self._row in _row(text):
            return 2
        return 1 if self._coded and all(token.search(plain) for token in self._coded) else 0


def _plain(text: str) -> str:
    return " ".join(normalized("NFKC", text).casefold().split())


def _trimmed(token: str) -> str:
    return token.strip("\"'“”‘’()[]{},;:?!").removesuffix(".")


def _bounded(text: str) -> re.Pattern[str]:
    """Matches *text*, but not as a part of a number or of a word in letters of ASCII."""
    return re.compile(_boundary(text[0], "(?<!{})") + re.escape(text) + _boundary(text[-1], "(?!{})"))


def _boundary(character: str, look: str) -> str:
    if character.isdigit():
        return look.format(r"\d")
    return look.format("[a-z]") if character.isascii() and character.isalpha() else ""


def _row(text: str) -> str:
    return " " + " ".join(word for _, word in words(text)) + " "
