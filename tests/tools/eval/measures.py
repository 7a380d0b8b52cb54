"""What is measured of each answer, and what of many."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

NAMES = ("R@1", "R@5", "R@10", "MRR", "nDCG@10")


def measured(found: Sequence[str], relevant: frozenset[str]) -> tuple[float, ...]:
    """Recall at 1, 5 and 10: the part of what is relevant; MRR; nDCG at 10, each relevant one worth the same."""
    places = [place for place, name in enumerate(found[:10], start=1) if name in relevant]
    recall = [sum(place <= most for place in places) / len(relevant) for most in (1, 5, 10)]
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(10, len(relevant)) + 1))
    gain = sum(1 / math.log2(place + 1) for place in places)
    return (*recall, 1 / places[0] if places else 0.0, gain / ideal)


@dataclass(slots=True)
class Scores:
    """Means by system, set and category."""

    _sums: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    _counts: dict[tuple[str, str, str], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, system: str, corpus: str, category: str, values: Sequence[float]) -> None:
        """Count one answer, in its category and in all of its set."""
        for key in ((system, corpus, category), (system, corpus, "all")):
            before = self._sums.get(key, [0.0] * len(values))
            self._sums[key] = [one + other for one, other in zip(before, values, strict=True)]
            self._counts[key] += 1

    def mean(self, system: str, corpus: str, category: str = "all") -> dict[str, float]:
        """By the name of the measure."""
        key = (system, corpus, category)
        return dict(zip(NAMES, (one / self._counts[key] for one in self._sums[key]), strict=True))

    def count(self, system: str, corpus: str, category: str) -> int:
        """How many answers."""
        return self._counts[system, corpus, category]

    def categories(self, corpus: str) -> list[str]:
        """The categories of a set; all of it first."""
        found = {category for _, other, category in self._sums if other == corpus}
        return ["all", *sorted(found - {"all"})]
