"""What a run is to measure, and what it measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.tools.load.cells import Cell, Times
from tests.tools.load.freshness import Freshness
from tests.tools.load.opinions import Opinion
from tests.tools.load.side_by_side import Line


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and for how long."""

    sizes: Sequence[int]
    clients: Sequence[int]
    workers: Sequence[int]
    """The first number of workers serves all cells; the others are compared with it."""
    times: Times
    share: float
    """The part of its capacity that a cell is offered."""
    real_vectors: int
    fresh: int
    """How many saves are searched for at each size, by words and by embedding each."""


class Fresh(NamedTuple):
    """From save to found, at one size."""

    items: int
    drawn: int
    """How many of the embeddings were drawn."""
    idle: Freshness
    loaded: Freshness
    """During the load of the cell with embeddings."""


class Stage(NamedTuple):
    """How long a part of the run took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Results:
    """One run."""

    plan: Plan
    machine: dict[str, str]
    cells: list[Cell] = field(default_factory=list)
    """By words alone, each size with each number of clients."""
    by_workers: list[Cell] = field(default_factory=list)
    semantic: list[Cell] = field(default_factory=list)
    """With an embedder."""
    fresh: list[Fresh] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    opinions: list[Opinion] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes that were measured so far."""
        return list(dict.fromkeys(cell.items for cell in self.cells))
