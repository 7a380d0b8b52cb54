"""Character n-grams: a field of the index that depends on no language.

They match what stems cannot: words in scripts without spaces, inflections that a stemmer misses, parts of words and
compounds, words typed without accents, symbols, and one token in two spellings (`getUserById`, `get_user_by_id`).

A gram begins at every character of a word. So the grams that begin with a part of a word, whatever its length, are
found as a prefix.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from functools import cache
from itertools import chain, pairwise
from types import MappingProxyType
from typing import NamedTuple

from muniment_server.domain.unicode import category, normalized
from muniment_server.search.han_table import PAIRS

PREFIX = ":*"
"""Ends a gram of a query that stands for all that begin with it, as in a tsquery."""
_BIGRAMS = "\u3005-\u3007\u303b\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff"
"""Han, with the marks that repeat it; kana and Hangul syllables."""
_TRIGRAMS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Scripts without spaces: Thai, Lao, Burmese, Khmer."""
_MAX_EXPANSION = 4
"""How many characters folding may make of one. U+FDFA becomes 18, and 256 kB of it would take seconds."""
_RUN = re.compile(f"(?P<two>[{_BIGRAMS}]+)|(?P<three>[{_TRIGRAMS}]+)|[^{_BIGRAMS}{_TRIGRAMS}]+")

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+|[$+<=>|~]+")
_SEQUENCE = "[$+<=>|~]+|[\U0001f1e6-\U0001f1ff]{{2}}|[{0}](?:\u200d[{0}])*"
"""Symbols of ASCII, a flag, or a symbol: people see symbols that a zero-width joiner joins as one."""
_INVISIBLE = frozenset("\u00ad\u200c\u200d\u2060") | set(map(chr, [*range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400)]))
_TO_REMOVE = re.compile("[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]|(?<=\\w)[\u00ad\u200c\u200d\u2060]+(?=\\w)")
"""Selectors, skin tones, and what may stand within a word for its look."""

# Each begins with a set of characters: Python then skips what is not in it several times as fast.
_MIXED = re.compile(r"[A-Z\d](?:(?<=[a-z][A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_]\d)|(?<=\d)(?=[^\W\d_]))")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_MAX_PARTS = 6
"""A token of more parts, such as a digest, has no words in it."""
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[-_][^\W_]++|['’][^\W_]{3,}+)+")
"""It begins where a word does, and gives nothing back: it takes time in proportion to the text."""
_NUMBER = re.compile(r"\d(?<!\d\d)(?:\d{0,2}(?:[.,'’ \u00a0\u202f]\d{3})+|[\d ()/.-]{5,22}\d)(?!\d)")
"""Digits in groups: of thousands, of a telephone number, of a date."""
_DATE = re.compile(r"(\d(?<!\d\d)\d?)[./](\d{1,2})[./](\d{4})(?!\d)")
_MAX_COMPOUND = 60

_WRITTEN_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_LETTERS = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŋ": "n", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th",
    "ى": "ي", "ی": "ي", "ک": "ك", "ٱ": "ا", "ة": "ه", "ہ": "ه", "ە": "ه", "ھ": "ه", "ـ": "", "ς": "σ",
}  # fmt: skip
"""Letters that people write for one another, and that do not decompose."""
_KATAKANA = {chr(code): chr(code - 0x60) for code in range(0x30A1, 0x30F7)}
_HAN = MappingProxyType(dict(zip(PAIRS[::2], PAIRS[1::2], strict=True)))
"""Simplified characters, by traditional ones and by forms that only Japanese has."""
_HAN_FORMS = frozenset(PAIRS)
_DIGIT = re.compile(r"[^\D0-9]")
"""Of another script than ASCII."""
_FOLDED = str.maketrans({**_LETTERS, **_KATAKANA, **_HAN})
_OPTIONAL_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u093c\u09bc\u0a3c\u0abc\u0b3c]"
)
"""Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic, the nukta; not the vowels of Indic scripts."""


@cache
def word_pattern() -> re.Pattern[str]:
    """Matches a word or a symbol. `\\w` does not match the vowel signs of Indic scripts, so all marks are added."""
    kinds = {code: category(chr(code)) for code in range(0xA0, 0x20000)}
    marks = "".join(chr(code) for code, kind in kinds.items() if code >= 0x300 and kind in {"Mn", "Mc"})
    symbols = "".join(chr(code) for code, kind in kinds.items() if kind in {"Sc", "Sm", "So"})
    sequence = _SEQUENCE.format(symbols)
    letters_and_marks = f"(?:[^\\W_]++|(?![\0-\x7f])[{marks}\U000e0100-\U000e01ef]++)++"
    return re.compile(f"{letters_and_marks}|(?=[^\0-\x7f]|[$+<=>|~])(?:{sequence})")  # most others are of ASCII


def words(text: str) -> list[tuple[str, str]]:
    """The words of *text*, each in lower case, and folded (without accents and compatibility forms) for grams.

    A token of several words is one, and so are its parts.
    """
    text = _visible(text)
    found = _tokens(text)
    tokens = dict.fromkeys(map(str.lower, (*found, *_parts(text, found), *_joined(text))))
    if text.isascii():
        return [(one, one) for one in tokens]
    return [(one, word) for one in tokens for word in _folded_words(one)]


def words_in_order(text: str) -> list[str]:
    """The tokens of *text*, folded, each as often as it occurs, without the other forms that `words` adds."""
    return [word for one in _tokens(_visible(text)) for word in _folded_words(one.lower())[:1]]


def has_other_forms(text: str) -> bool:
    """Whether *text* has Han characters with other forms, which folding makes equal."""
    return not (text.isascii() or _HAN_FORMS.isdisjoint(text))


def folded_words(text: str) -> list[str]:
    """The words of *text*, folded, each once, in order."""
    return list(dict.fromkeys(word for _, word in words(text)))


def grams(text: str) -> list[str]:
    """The grams of *text* for the index, each once, in order."""
    return grams_of_words(folded_words(text))


def grams_of_words(folded: Iterable[str]) -> list[str]:
    """The grams of some folded words, each once, in order."""
    found = dict[str, None]()
    for word in folded:
        if word.isascii():  # most words are one run: inlined, this takes half the time
            letters = f"_{word}_"
            for start in range(max(1, len(letters) - 3)):
                found[letters[start : start + 4]] = None
        else:
            found.update(dict.fromkeys(grams_of(word)))
    return list(found)


def grams_of(word: str) -> list[str]:
    """Bigrams of Han, kana and Hangul; trigrams of other scripts without spaces; otherwise 4-grams with word ends.

    The last ones of a script without spaces are shorter, so that one begins at each character.
    """
    return [gram for run in _runs(word) for gram in run.indexed]


def query_grams_of(word: str) -> list[str]:
    """The grams of a word of a query: whole ones, or those that begin with a run that is shorter."""
    return list(dict.fromkeys(chain.from_iterable(evidence_of(word))))


def evidence_of(word: str) -> list[tuple[str, ...]]:
    """The combinations of grams that count as a match of *word*."""
    return [combination for run in _runs(word) for combination in run.evidence]


def has_no_spaces(word: str) -> bool:
    """Whether *word* has letters of a script that is written without spaces, so that it may be a whole sentence."""
    return any(run.size < 4 for run in _runs(word))


def is_part_of_occurring_word(gram: str, occurring: Set[str]) -> bool:
    """Whether *gram* is a prefix such as `art:*`, and both grams of the word `art` occur.

    Then parts of other words do not count.
    """
    letters = gram.removesuffix(PREFIX)
    return gram != letters and {f"_{letters}", f"{letters}_"} <= occurring


class _Run(NamedTuple):
    """Letters of scripts that are cut alike."""

    letters: str
    size: int
    """Of their grams: 4 where words have spaces between them."""

    @property
    def indexed(self) -> list[str]:
        if self.size == 4:
            return _ngrams(f"_{self.letters}_", 4)
        return [self.letters[start : start + self.size] for start in range(len(self.letters))]

    @property
    def evidence(self) -> list[tuple[str, ...]]:
        """The combinations of grams that count as a match."""
        return self._spaced_evidence() if self.size == 4 else self._unspaced_evidence()

    def _spaced_evidence(self) -> list[tuple[str, ...]]:
        """Two adjacent 4-grams: `team` shares one with `tear`. Three or four letters also match within a word."""
        if len(self.letters) < 3:
            return [(f"_{self.letters}_",)]
        within = {3: [(self.letters + PREFIX,)], 4: [(self.letters,)]}
        return [*pairwise(self.indexed), *within.get(len(self.letters), [])]

    def _unspaced_evidence(self) -> list[tuple[str, ...]]:
        """Any gram; or a prefix, if the run is shorter than a gram. Two or three characters may also stand apart."""
        if len(self.letters) < self.size:
            return [(self.letters + PREFIX,)]
        found: list[tuple[str, ...]] = [(gram,) for gram in _ngrams(self.letters, self.size)]
        if self.size == 2 and len(self.letters) < 4:
            found.append(tuple(letter + PREFIX for letter in self.letters))
        return found


def _visible(text: str) -> str:
    """*text* in NFC, without what only changes how a character looks."""
    text = normalized("NFC", text)
    return _TO_REMOVE.sub("", text) if not _INVISIBLE.isdisjoint(text) else text


def _tokens(text: str) -> list[str]:
    return (_ASCII_WORD if text.isascii() else word_pattern()).findall(text)


def _runs(word: str) -> Iterator[_Run]:
    for run in _RUN.finditer(word):
        yield _Run(run[0], 2 if run["two"] else 3 if run["three"] else 4)


def _ngrams(letters: str, size: int) -> list[str]:
    return [letters[start : start + size] for start in range(max(1, len(letters) - size + 1))]


def _parts(text: str, found: list[str]) -> Iterator[str]:
    """The words of tokens that have several without anything between them: `getUserById`, `LH456`."""
    if _MIXED.search(text):
        for token in found:
            parts = _PARTS.findall(token) if _MIXED.search(token) else []
            if 1 < len(parts) <= _MAX_PARTS:
                yield from parts


def _joined(text: str) -> Iterator[str]:
    """Tokens as one word whose parts are separated: `get_user_by_id`, `52,000`; and dates, the year first."""
    if any(sign in text for sign in "-_'’"):
        for compound in _COMPOUND.findall(text):
            if len(compound) <= _MAX_COMPOUND:
                yield re.sub(r"[\W_]", "", compound)
    for number in _NUMBER.findall(text):
        yield re.sub(r"\D", "", number)
    for day, month, year in _DATE.findall(text):
        yield f"{year}{month:0>2}{day:0>2}"


def _folded_words(word: str) -> list[str]:
    """*word* without accents and compatibility forms, which may make several of it; also with umlauts written out."""
    if word.isascii():
        return [word]
    forms = dict.fromkeys([word, word.translate(_WRITTEN_OUT)])
    return list(
        dict.fromkeys(
            part for form in forms for part in word_pattern().findall(_folded(form)[: _MAX_EXPANSION * len(word)])
        )
    )


def _folded(text: str) -> str:
    """*text* without case, compatibility forms and optional marks, in one form of letters and digits."""
    kept = _OPTIONAL_MARKS.sub("", normalized("NFKD", text))
    folded = normalized("NFC", kept).lower().translate(_FOLDED)
    return _DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), folded)
