"""Splits a text into tokens, by a unigram model."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable

_BLANKS = re.compile("[\0-\x20\x7f\x8f\x9f\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]+")
"""The characters that the model treats as blanks, once NFKC has replaced the other blanks."""
_BLANK = "\u2581"
_WORD = re.compile(f"{_BLANK}[^{_BLANK}]*")
_PENALTY = 10.0
"""How far the score of an unknown character is below that of the rarest token."""


class Tokenizer:
    """Splits texts by a vocabulary, in a time that is linear in the length of a text."""

    def __init__(self, vocabulary: Iterable[tuple[str, float]], unknown: int) -> None:
        """*vocabulary*: tokens with the logarithms of their probabilities; 0 for markers, which no text contains.

        *unknown* is the number of the token for characters without one.
        """
        self._numbers: dict[str, int] = {}
        self._scores = array("f")
        for number, (token, score) in enumerate(vocabulary):
            self._scores.append(score)
            if score:
                self._numbers[token] = number
        self._longest = max(map(len, self._numbers))
        self._unknown = unknown
        self._scores[unknown] = min(self._scores) - _PENALTY

    def tokens(self, text: str) -> list[int]:
        """The numbers of the tokens of the most probable split of *text*. A blank can only begin a token."""
        return [number for word in _WORD.findall(_BLANKS.sub(_BLANK, f" {text}")) for number in self._tokens_of(word)]

    def _tokens_of(self, word: str) -> Iterable[int]:
        """By Viterbi's algorithm."""
        best = [0.0] + [-math.inf] * len(word)
        last = [(0, 0)] * len(best)  # by end of each prefix of the word: where its last token begins, and its number
        for begin, before in enumerate(best):
            for end in range(begin + 1, min(begin + self._longest, len(word)) + 1):
                number = self._numbers.get(word[begin:end], self._unknown if end == begin + 1 else None)
                if number is not None and (score := before + self._scores[number]) > best[end]:
                    best[end], last[end] = score, (begin, number)
        found = []
        end = len(word)
        while end:
            end, number = last[end]
            found.append(number)
        return reversed(found)
