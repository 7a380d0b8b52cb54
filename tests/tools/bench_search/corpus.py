"""Items and queries of any number, with the word frequencies of real text.

Items are excerpts of real sentences in random order. Real text keeps introducing new words and repeated text does not,
so a few words are invented, by Zipf's law. Queries are real questions about the same text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.tools.eval.corpora import corpora

_BYTES = 184
"""Of an item, on average: about a turn of a chat."""
_EXCERPT = 8
"""The average length of an excerpt, in words."""
_INVENTED = 0.05
"""The part of the words that is invented."""
_SYLLABLES = ("ka", "ro", "mi", "ten", "lu", "sha", "vel", "dor", "ni", "gar", "pe", "oth", "zu", "lin", "bra", "fex")


class Source:
    """Real text of a folder, to make items and queries of. The same seed makes the same."""

    def __init__(self, data: Path, seed: int = 1) -> None:
        sets = [corpus for corpus in corpora(data) if corpus.name != "XQuAD" or corpus.agent_id.endswith("-en")]
        self._random = random.Random(seed)
        self._sentences = [
            words
            for corpus in sets
            for document in corpus.documents
            for sentence in re.split(r"(?<=[.!?])\s+", document.content)
            if len(words := sentence.split()) > 2
        ]
        self._questions = [question.text for corpus in sets for question in corpus.questions]

    def items(self, count: int) -> Iterator[str]:
        """The contents of so many items."""
        for _ in range(count):
            wanted = max(20.0, self._random.gauss(_BYTES, _BYTES / 4))
            words: list[str] = []
            while sum(len(word) + 1 for word in words) < wanted:
                words += self._excerpt()
            yield " ".join(words)

    def queries(self, count: int) -> Sequence[str]:
        """So many different questions."""
        return self._random.sample(self._questions, count)

    def _excerpt(self) -> Iterator[str]:
        words = self._random.choice(self._sentences)
        length = min(len(words), 1 + int(self._random.expovariate(1 / _EXCERPT)))
        start = self._random.randrange(len(words) - length + 1)
        for word in words[start : start + length]:
            yield self._invented() if self._random.random() < _INVENTED else word

    def _invented(self) -> str:
        """A word of rank r once in r times."""
        rank = int(1_000_000 ** self._random.random())
        return "".join(_SYLLABLES[int(digit, 16)] for digit in f"{rank:x}")


def sizes(text: str) -> list[int]:
    """`1e4,1e5` as numbers. Raises ValueError."""
    return [int(float(size)) for size in text.split(",")]
