"""Character n-grams: a field of the index that needs no language.

They find what stems cannot: words of scripts without spaces, inflections that a stemmer misses, parts of compounds,
missing accents. Measured on twelve languages: service/README.md, decisions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

_BIGRAMS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff"
"""Han, kana, Hangul syllables."""
_TRIGRAMS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Scripts without spaces: Thai, Lao, Burmese, Khmer."""
_MOST_FOLDED = 4
"""Characters that one may become. U+FDFA becomes 18: 256 kB of it were seconds of work."""
_ASCII_WORD = re.compile("[a-z0-9]+")
_RUN = re.compile(f"(?P<two>[{_BIGRAMS}]+)|(?P<three>[{_TRIGRAMS}]+)|[^{_BIGRAMS}{_TRIGRAMS}]+")


@cache
def word_pattern() -> re.Pattern[str]:
    """What is a word: letters, digits and every mark: `\\w` leaves the vowel signs of Indic scripts out."""
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
    return re.compile(f"(?:[^\\W_]|[{marks}\U000e0100-\U000e01ef])+")


def words(text: str) -> list[tuple[str, str]]:
    """The words of *text* in lower case, and as grams are made of them: case, forms and accents folded."""
    lower = unicodedata.normalize("NFC", text).lower()
    if lower.isascii():  # nothing to fold
        return [(word, word) for word in _ASCII_WORD.findall(lower)]
    spelled = word_pattern().findall(lower)
    return [(one, word) for one in spelled for word in word_pattern().findall(_folded(one)[: _MOST_FOLDED * len(one)])]


def grams(text: str) -> list[str]:
    """The grams of *text*, each once, in order."""
    return list(dict.fromkeys(gram for _, word in words(text) for gram in grams_of(word)))


def grams_of(word: str) -> list[str]:
    """Bigrams of Han, kana and Hangul, trigrams of other scripts without spaces, of the rest 4-grams with ends."""
    return [gram for run in _runs(word) for gram in run]


def evidence_of(word: str) -> list[tuple[str, ...]]:
    """The combinations of grams that count as a match of *word*.

    One gram of four letters is too little: `team` would match `tea`. So it takes two that are neighbours.
    """
    return [
        pair
        for run in _runs(word)
        for pair in (pairwise(run) if len(run) > 1 and len(run[0]) > 3 else ((gram,) for gram in run))
    ]


def _runs(word: str) -> Iterator[list[str]]:
    for run in _RUN.finditer(word):
        size = 2 if run["two"] else 3 if run["three"] else 4
        letters = run[0] if size < 4 else f"_{run[0]}_"
        yield [letters[start : start + size] for start in range(max(1, len(letters) - size + 1))]


def _folded(text: str) -> str:
    """Without case, compatibility forms and marks below U+0370, the accents; with every Indic vowel sign."""
    characters = unicodedata.normalize("NFKD", text)
    kept = "".join(one for one in characters if ord(one) >= 0x370 or unicodedata.category(one) != "Mn")
    return unicodedata.normalize("NFC", kept).lower()
