"""The corpora in the folder of that name: memories, queries by kind, and the keys that each query expects."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment import NewMemory

FOLDER = Path(__file__).with_name("corpora")
NONE = "none"
KINDS = {
    "short": "one character, or a word shorter than a gram",
    "mark": "a word with a mark that belongs to it, such as 々",
    "symbol": "an emoji, a currency, an arrow",
    "exact": "what stands in the text exactly so, beside texts with nearly the same",
    "spelling": "one token in another spelling: numbers, dates, phone numbers, identifiers",
    "folding": "other letters for the same word: without accents or points, other width, other script of one language",
    "stopword": "a name that is a stop word of its own or of another language",
    "part": "a part of a word",
    "typo": "a word with an error",
    "words": "words of the text, perhaps in another form",
    "question": "a question in the language of the text",
    "synonym": "other words for it in the language of the text",
    "translation": "words of another language",
    NONE: "what nothing in the corpus answers: greetings, other subjects, nonsense",
}
SHARES_NO_WORD = frozenset({"synonym", "translation"})
"""Kinds whose queries share no word with the text: words alone need not find it."""


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody types. Any of the expected keys is right; without one, nothing is."""

    text: str
    kind: str
    expected: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one person has saved, and asks for."""

    name: str
    memories: Sequence[NewMemory]
    queries: Sequence[Query]


def corpora() -> list[Corpus]:
    """All there are, by name."""
    return [_corpus(path) for path in sorted(FOLDER.glob("*.toml"))]


def _corpus(path: Path) -> Corpus:
    content = tomllib.loads(path.read_text("utf-8"))
    return Corpus(
        path.stem,
        [_memory(key, value) for key, value in content["memories"].items()],
        [
            Query(text, kind, frozenset([expected] if isinstance(expected, str) else expected))
            for kind, queries in content["queries"].items()
            for text, expected in queries.items()
        ],
    )


def _memory(key: str, value: Any) -> NewMemory:
    return NewMemory(key, value) if isinstance(value, str) else NewMemory(key, value["content"], tags=value["tags"])
