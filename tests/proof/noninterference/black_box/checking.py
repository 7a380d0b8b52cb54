"""Checks an adapter: first that planted leaks are found in its system, then its arrangements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .comparing import Difference, Worlds, shrink
from .planted import LEAKS
from .programs import Program, generate
from .systems import Arrangement, System

_PROGRAMS_FOR_A_PLANTED_LEAK = 40
_CONFIRMATIONS = 5
"""How often a leak must show again. An answer in random order differs by chance, but not each time."""

Progress = Callable[[str, int, int], None]
"""Is given what is being checked, and how many programs of how many have run."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was found in one arrangement."""

    arrangement: Arrangement
    programs: int
    compared: int
    leaking: int
    """Programs in which the observer can tell the worlds apart."""
    unstable: int
    """Programs in which a world differs from itself: they show nothing."""
    leaks: Sequence[Difference]
    """The smallest program for each operation through which something leaked."""


@dataclass(slots=True)
class Report:
    """What was found in one system."""

    adapter: str
    system: str
    version: str
    planted: dict[str, int | None] = field(default_factory=dict)
    """After how many programs each planted leak was found; None if it was not."""
    results: list[Result] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        """Whether every planted leak was found."""
        return None not in self.planted.values()

    @property
    def leaks(self) -> bool:
        """Whether any arrangement leaked."""
        return any(result.leaking for result in self.results)


def find_planted(systems: tuple[System, System], leak: str, seed: str) -> int | None:
    """After how many programs the planted leak is found, in programs that do not leak without it. None: it is not."""
    arrangement = systems[0].description.arrangements[0].name
    planted = LEAKS[leak]
    with_it = Worlds((planted(systems[0]), planted(systems[1])), arrangement)
    without = Worlds(systems, arrangement)
    for number in range(_PROGRAMS_FOR_A_PLANTED_LEAK):
        program = generate(systems[0].description.operations, f"{seed} planted {leak} {number}")
        if with_it.is_leak(program) and not without.compare(program):
            return number + 1
    return None


def check(
    systems: tuple[System, System], arrangement: Arrangement, seed: str, programs: int, progress: Progress
) -> Result:
    """Run *programs* programs, and shrink the first that leaks through each operation."""
    worlds = Worlds(systems, arrangement.name)
    leaks: dict[str, Difference] = {}
    leaking = unstable = 0
    for number in range(programs):
        progress(arrangement.name, number, programs)
        program = generate(systems[0].description.operations, f"{seed} {number}")
        found = worlds.compare(program)
        if found is None:
            continue
        if not worlds.is_leak(found.program, _CONFIRMATIONS):
            unstable += 1
            continue
        leaking += 1
        if found.operation not in leaks:
            leaks[found.operation] = _smallest(worlds, found)
    return Result(arrangement, programs, worlds.compared, leaking, unstable, list(leaks.values()))


def _smallest(worlds: Worlds, found: Difference) -> Difference:
    """The smallest program that leaks through the same operation."""

    def leaks(program: Program) -> bool:
        other = worlds.compare(program)
        return other is not None and other.operation == found.operation and worlds.is_leak(other.program)

    small = shrink(found.program, leaks)
    return (worlds.is_leak(small, _CONFIRMATIONS) and worlds.compare(small)) or found
