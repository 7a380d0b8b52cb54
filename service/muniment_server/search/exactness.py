"""Exactness: whether a text has a query as it is spelled, and not only its words.

Ranking compares bags of words. Of its best matches, those that have the whole query come first, then those that have
its words in a row, then those that have its coded tokens: with digits or symbols, such as `1.2.3` or `C++`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from muniment_server.domain.unicode import normalized
from muniment_server.search.grams import has_other_forms, words_in_order

MORE_COMPARED = 20
"""How many matches beyond the limit are compared."""
_MAX_CODED = 100
"""How many code points a coded token may have."""
_CODED = re.compile(r"\S*(?:\d[^\w\s]+\w|\w[^\w\s]+\d|[+<=>|~$#@_/\\])\S*")
_AT_THE_END = " ?!.,;:"


class Exactness:
    """How exactly texts have one query. 3: the whole query; 2: its words in a row; 1: its coded tokens; 0: neither.

    *names* are stop words, in lower case. Those with a capital in the query count as coded tokens.
    """

    def __init__(self, query: str, names: Collection[str] = ()) -> None:
        self._whole = _plain(query).rstrip(_AT_THE_END)
        tokens = (token.strip("\"'“”‘’()[]{},;:?!").removesuffix(".") for token in self._whole.split())
        self._coded = [token for token in tokens if len(token) <= _MAX_CODED and _CODED.fullmatch(token)]
        self._names = [name for name in _words_of(query) if name[0].isupper() and name.lower() in names]
        self._row = _in_a_row(query) if " " in self._whole else ""
        self._has_other_forms = has_other_forms(query)

    @property
    def distinguishes(self) -> bool:
        """Whether texts can differ in exactness. For a query of one plain word, they cannot."""
        return bool(self._row or self._coded or self._has_other_forms)

    def has_whole(self, text: str) -> bool:
        """Whether *text* contains the whole query, and not within a number or a word of ASCII letters."""
        return _stands_in(self._whole, _plain(text))

    def rank_of(self, text: str) -> int:
        """How exactly *text* has the query, from 0 to 3."""
        plain = _plain(text)
        if _stands_in(self._whole, plain):
            return 3
        if self._row and self._row in _in_a_row(text):
            return 2
        if not (self._coded or self._names):
            return 0
        has_names = not self._names or set(self._names) <= set(_words_of(text))
        return int(has_names and all(_stands_in(token, plain) for token in self._coded))


def _plain(text: str) -> str:
    return " ".join(normalized("NFKC", text).casefold().split())


def _words_of(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text)


def _in_a_row(text: str) -> str:
    return f" {' '.join(words_in_order(text))} "


def _stands_in(part: str, text: str) -> bool:
    """Whether *part* occurs in *text*, but not as a part of a number or of a word in letters of ASCII."""
    start = text.find(part) if part else -1
    while start >= 0:
        end = start + len(part)
        if not (_goes_on(text[start - 1 : start], part[0]) or _goes_on(part[-1], text[end : end + 1])):
            return True
        start = text.find(part, start + 1)
    return False


def _goes_on(one: str, next_one: str) -> bool:
    """Whether two characters are of one number, or of one word in letters of ASCII."""
    both = one + next_one
    return len(both) == 2 and (both.isdigit() or (both.isascii() and both.isalpha()))
