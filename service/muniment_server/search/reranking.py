"""Reranking: a model at an address orders the best matches of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from muniment_server.domain.classification import Classification, Label

MAX_RERANKED = 50
"""How many matches are reranked: the best ones."""


@dataclass(frozen=True, slots=True)
class LabeledText:
    """What a reranker reads of one match."""

    level: Label
    text: str


Reranking: TypeAlias = Callable[[str, Sequence[LabeledText], Label], Sequence[int] | None]
"""Orders the texts that a query of a session at a level found: their indexes, best first. None without an answer."""


@dataclass(frozen=True, slots=True)
class Reranker:
    """The reranker at an address. It is used by sessions up to the ceiling, for texts up to it."""

    ceiling: Classification | None = None
    """None without a reranker."""
    order: Reranking = lambda _query, _texts, _level: None

    def matches_for(self, level: Label, limit: int) -> int:
        """How many matches a search of a session at *level* needs for *limit* results: all that are reranked."""
        return max(limit, MAX_RERANKED) if self._serves(level) else limit

    def rerank(self, query: str, texts: Sequence[LabeledText], level: Label) -> Sequence[int] | None:
        """The order of the matches with these texts, by their indexes: of the first ones a new one, then all others.

        None if it stays: above the ceiling nothing is sent, neither the query nor a text.
        """
        best = texts[:MAX_RERANKED]
        if not self._serves(level) or len(best) < 2 or not all(self._serves(one.level) for one in best):
            return None
        order = self.order(query, best, level)
        if order is None or sorted(order) != list(range(len(best))):
            return None
        return [*order, *range(len(best), len(texts))]

    def _serves(self, level: Label) -> bool:
        return self.ceiling is not None and level.level.can_flow_to(self.ceiling)


NO_RERANKER = Reranker()
