"""Visits every state of the machine, breadth first, so that the first violation found has a shortest trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from tests.proof.taint_model.guards import Guards
from tests.proof.taint_model.invariants import LAWS, Observations, makes_wait
from tests.proof.taint_model.machine import steps
from tests.proof.taint_model.state import State, Step, shape


class Violation(NamedTuple):
    """A law that does not hold, and the steps that lead there."""

    law: str
    trace: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.law} is broken:", *(f"  {n}. {step}" for n, step in enumerate(self.trace, 1))])


class Explored(NamedTuple):
    """What was visited, and the first violation."""

    states: int
    steps: int
    depth: int
    violation: Violation | None


def explore(beginnings: Iterable[State], guards: Guards) -> Explored:
    """Visit all that can be reached from the *beginnings*, up to the first violation."""
    came_from: dict[State, tuple[State, Step] | None] = dict.fromkeys(beginnings)
    shapes = set(map(shape, came_from))
    visited = set(came_from)
    waiting = deque((state, 0) for state in came_from)
    observations = Observations()
    taken = depth = 0
    while waiting:
        before, depth = waiting.popleft()
        for step, after in steps(before, guards):
            taken += 1
            for name, holds in LAWS.items():
                if not holds(before, step, after):
                    trace = (*_trace(came_from, before), step)
                    return Explored(len(came_from), taken, depth, Violation(name, trace))
            if after in visited:
                continue
            visited.add(after)
            if (known := shape(after)) not in shapes:
                shapes.add(known)
                came_from[after] = before, step
                waiting.append((after, depth + 1))
        if law := _broken_in(before, guards, observations):
            return Explored(len(came_from), taken, depth, Violation(law, _trace(came_from, before)))
    return Explored(len(came_from), taken, depth, None)


def _broken_in(state: State, guards: Guards, observations: Observations) -> str | None:
    """The law that a state breaks by what its sessions may do next."""
    if makes_wait(state, guards) is not None:
        return "no_session_waits_for_a_higher_one"
    if observations.differ(state, guards) is not None:
        return "nothing_above_is_observed"
    return None


def _trace(came_from: dict[State, tuple[State, Step] | None], state: State) -> tuple[Step, ...]:
    trace: list[Step] = []
    while (last := came_from[state]) is not None:
        state, step = last
        trace.append(step)
    return tuple(reversed(trace))
