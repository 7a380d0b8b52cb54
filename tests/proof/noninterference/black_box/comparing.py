"""Runs a program in two worlds and compares what the observer sees; shrinks a program that leaks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .naming import Names
from .programs import Line, Program, Step, simpler
from .systems import System

_ATTEMPTS = 300
"""The most programs that are tried to shrink one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the observer can tell two worlds apart: the last line of *program*."""

    program: Program
    operation: str
    in_a: str
    in_b: str


class Worlds:
    """The same system twice, with one arrangement."""

    def __init__(self, systems: tuple[System, System], arrangement: str) -> None:
        self._systems = systems
        self._arrangement = arrangement
        self.compared = 0
        """Answers to the observer that were compared."""

    def compare(self, program: Program) -> Difference | None:
        """Run *program* in new worlds, up to the first answer to the observer that differs."""
        for system in self._systems:
            system.begin(self._arrangement)
        names = [Names(system.description.made) for system in self._systems]
        for at, line in enumerate(program):
            in_a, in_b = self._answers(line)
            if not line.observed:
                continue
            self.compared += 1
            seen_a, seen_b = names[0].canonical(in_a), names[1].canonical(in_b)
            if seen_a != seen_b:
                assert line.in_a
                return Difference(program[: at + 1], line.in_a.operation, seen_a.decode(), seen_b.decode())
        return None

    def is_leak(self, program: Program, times: int = 1) -> bool:
        """Whether the worlds differ because of `high`: each from the other and not from itself, *times* times."""
        twice_a = [Line(line.in_a, line.in_a) for line in program]
        twice_b = [Line(line.in_b, line.in_b) for line in program]
        return all(
            self.compare(program) and not self.compare(twice_a) and not self.compare(twice_b) for _ in range(times)
        )

    def _answers(self, line: Line) -> Sequence[Any]:
        steps: tuple[Step | None, Step | None] = (line.in_a, line.in_b)
        for system, step in zip(self._systems, steps, strict=True):
            if step:
                system.send(step)
        return [system.receive() if step else None for system, step in zip(self._systems, steps, strict=True)]


def shrink(program: Program, leaks: Callable[[Program], bool], attempts: int = _ATTEMPTS) -> Program:
    """A program that leaks and is no longer than *program*: by delta debugging, then with smaller arguments."""
    left = itertools.count(attempts, -1)

    def still(candidate: Program) -> bool:
        return next(left) > 0 and leaks(candidate)

    program = _fewer_lines(program, still)
    while smaller := next((each for each in simpler(program) if still(each)), None):
        program = smaller
    return program


def _fewer_lines(program: Program, still: Callable[[Program], bool]) -> Program:
    """Zeller's ddmin, over complements: leave out a half, then quarters, and so on, while what is left leaks."""
    parts = 2
    while len(program) > 1:
        size = -(-len(program) // parts)
        fewer = next(
            (
                candidate
                for at in range(0, len(program), size)
                if still(candidate := [*program[:at], *program[at + size :]])
            ),
            None,
        )
        if fewer is not None:
            program, parts = fewer, max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(2 * parts, len(program))
    return program
