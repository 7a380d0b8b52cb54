"""Character n-grams: a field of the index that depends on no language.

They match what stems cannot: words in scripts without spaces, inflections that a stemmer misses, parts of compounds,
words typed without accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise

from muniment_server.domain.unicode import normalized

_BIGRAMS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff"
"""Han, kana and Hangul syllables."""
_TRIGRAMS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Scripts without spaces: Thai, Lao, Burmese, Khmer."""
_MAX_EXPANSION = 4
"""How many characters folding may make of one. U+FDFA becomes 18, and 256 kB of it would take seconds."""
_ASCII_WORD = re.compile("[a-z0-9]+")
_RUN = re.compile(f"(?P<two>[{_BIGRAMS}]+)|(?P<three>[{_TRIGRAMS}]+)|[^{_BIGRAMS}{_TRIGRAMS}]+")


@cache
def word_pattern() -> re.Pattern[str]:
    """Matches a word: letters, digits and all marks. `\\w` does not match the vowel signs of Indic scripts."""
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
    return re.compile(f"(?:[^\\W_]|[{marks}\U000e0100-\U000e01ef])+")


def words(text: str) -> list[tuple[str, str]]:
    """The words of *text*, each in lower case, and folded (without accents and compatibility forms) for grams."""
    lower = normalized("NFC", text).lower()
    if lower.isascii():  # nothing to fold
        return [(word, word) for word in _ASCII_WORD.findall(lower)]
    return [(one, word) for one in word_pattern().findall(lower) for word in _folded_words(one)]


def grams(text: str) -> list[str]:
    """The grams of *text*, each once, in order."""
    each_once = dict.fromkeys(word for _, word in words(text))
    return list(dict.fromkeys(chain.from_iterable(map(grams_of, each_once))))


def grams_of(word: str) -> list[str]:
    """Bigrams of Han, kana and Hangul; trigrams of other scripts without spaces; otherwise 4-grams with word ends."""
    if word.isascii():  # one run: most words, and much faster
        return _four_grams(word)
    return [gram for run in _runs(word) for gram in run]


def evidence_of(word: str) -> list[tuple[str, ...]]:
    """The combinations of grams that count as a match of *word*.

    A single 4-gram is not enough: `team` would match `tea`. So two adjacent ones must match.
    """
    return [
        pair
        for run in _runs(word)
        for pair in (pairwise(run) if len(run) > 1 and len(run[0]) > 3 else ((gram,) for gram in run))
    ]


def _runs(word: str) -> Iterator[list[str]]:
    for run in _RUN.finditer(word):
        letters = run[0]
        yield _ngrams(letters, 2) if run["two"] else _ngrams(letters, 3) if run["three"] else _four_grams(letters)


def _four_grams(letters: str) -> list[str]:
    return _ngrams(f"_{letters}_", 4)


def _ngrams(letters: str, size: int) -> list[str]:
    return [letters[start : start + size] for start in range(max(1, len(letters) - size + 1))]


def _folded_words(word: str) -> list[str]:
    """*word* without accents and compatibility forms, which may make several of it."""
    return [word] if word.isascii() else word_pattern().findall(_folded(word)[: _MAX_EXPANSION * len(word)])


def _folded(text: str) -> str:
    """*text* without case, compatibility forms and accents (marks below U+0370). Indic vowel signs are kept."""
    characters = normalized("NFKD", text)
    kept = "".join(one for one in characters if ord(one) >= 0x370 or unicodedata.category(one) != "Mn")
    return normalized("NFC", kept).lower()
