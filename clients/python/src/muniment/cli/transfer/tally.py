"""Counts by level and kind what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muniment import Classification
from muniment.cli.output import Row
from muniment.cli.transfer.items import KINDS, Item

COLUMNS = ("level", "kind", "added", "replaced", "unchanged")


@dataclass(slots=True)
class Tally:
    """How many items of each level and kind were new, replaced another version, or existed already."""

    added: Counter[tuple[Classification, str]] = field(default_factory=Counter)
    replaced: Counter[tuple[Classification, str]] = field(default_factory=Counter)
    unchanged: Counter[tuple[Classification, str]] = field(default_factory=Counter)

    def rows(self) -> list[Row]:
        """One row for each level and kind that has items."""
        return [
            {"level": level, "kind": kind} | {name: getattr(self, name)[level, kind] for name in COLUMNS[2:]}
            for level in Classification
            for kind in KINDS
            if self.added[level, kind] + self.replaced[level, kind] + self.unchanged[level, kind]
        ]


def by_level(items: Iterable[Item]) -> list[str]:
    """`INTERNAL: 2 memories, 1 note`: a text for each level, the highest last."""
    counts: dict[Classification, Counter[str]] = {}
    for item in items:
        counts.setdefault(item.level, Counter())[item.kind] += 1
    return [f"{level.name}: {in_words(kinds)}" for level, kinds in sorted(counts.items())]


def in_words(kinds: Mapping[str, int]) -> str:
    """`2 memories, 1 note`."""
    return ", ".join(_words(kinds[kind], kind) for kind in KINDS if kinds.get(kind))


def _words(count: int, kind: str) -> str:
    if count == 1:
        return f"1 {kind}"
    return f"{count:,} {'memories' if kind == 'memory' else f'{kind}s'}"
