"""The facts of LoCoMo as memories of its people at four levels, and what a session must see of them.

Level, key and tag of each fact are computed from the file, so that the model knows every answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muniment import Classification

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("MUNIMENT_DATA") or ROOT / ".." / "shared" / "data")
FACTS = DATA / "locomo-facts.jsonl"
_SHARES_A_KEY = 5
"""Every fifth fact of an agent takes the key of the one before it, at another level: one shadows the other."""
_QUERY_WORDS = 4


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, as the memory it is saved as."""

    agent_id: str
    key: str
    content: str
    tag: str
    level: Classification


class Vocabulary:
    """How many of some texts have each word."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._spread = Counter(word for text in texts for word in words(text))

    def query_for(self, text: str) -> str:
        """The words of *text* that the fewest texts have. Empty when it has no word of four letters."""
        return " ".join(sorted(words(text), key=lambda word: (self._spread[word], word))[:_QUERY_WORDS])


class Model:
    """What each agent's sessions see, computed from the file alone."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = facts
        self._of_agent: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            self._of_agent[fact.agent_id].append(fact)
        self._vocabulary = {agent: Vocabulary(fact.content for fact in own) for agent, own in self._of_agent.items()}

    @property
    def agents(self) -> list[str]:
        """All of them, by id."""
        return sorted(self._of_agent)

    def of(self, agent_id: str) -> Sequence[Fact]:
        """The facts of one agent at every level, as the file has them."""
        return self._of_agent[agent_id]

    def keys(self, agent_id: str) -> list[str]:
        """Every key there is at any level."""
        return sorted({fact.key for fact in self._of_agent[agent_id]})

    def seen(self, agent_id: str, taint: Classification) -> Mapping[str, Fact]:
        """Law 1 and the shadow: of each key the highest version at or below *taint*, ordered by key."""
        below = (fact for fact in self._of_agent[agent_id] if fact.level.can_flow_to(taint))
        highest = {fact.key: fact for fact in sorted(below, key=lambda fact: fact.level)}
        return dict(sorted(highest.items()))

    def query_for(self, fact: Fact) -> str:
        """The words of a fact that the fewest others of its agent have."""
        return self._vocabulary[fact.agent_id].query_for(fact.content)


def highest(levels: Iterable[Classification]) -> Classification:
    """The join: PUBLIC when there are none."""
    return max(levels, default=Classification.PUBLIC)


def load() -> Model:
    """Read the file. Raises FileNotFoundError."""
    with FACTS.open(encoding="utf-8") as lines:
        return Model(list(facts_of(map(json.loads, lines))))


def facts_of(rows: Iterable[Mapping[str, str]]) -> Iterator[Fact]:
    """The facts of *rows*, which have a conversation, a session, a person and a fact."""
    last: dict[str, Fact] = {}
    numbers: Counter[str] = Counter()
    for row in rows:
        agent = f"{row['person']}.{row['conversation']}"
        number = numbers[agent]
        numbers[agent] += 1
        key, level = f"fact {number:03}", level_of(row["fact"])
        if number % _SHARES_A_KEY == _SHARES_A_KEY - 1:
            key, level = last[agent].key, level_beside(last[agent].level, row["fact"])
        last[agent] = Fact(agent, key, row["fact"], row["session"], level)
        yield last[agent]


def level_of(text: str) -> Classification:
    """The level that *text* is kept at: as good as any, and always the same."""
    return Classification(1 + digest(text) % 4)


def level_beside(level: Classification, text: str) -> Classification:
    """A level that is not *level*."""
    return Classification(1 + (level - 1 + 1 + digest(text) % 3) % 4)


def digest(text: str) -> int:
    """A number below 256 that follows from *text*."""
    return hashlib.sha256(text.encode()).digest()[0]


def words(text: str) -> set[str]:
    """Words of four letters and more, so that few of them are stop words."""
    return set(re.findall(r"[^\W\d_]{4,}", text.lower()))
