"""Programs: what an observer and somebody hidden from it do with a memory, in each of two worlds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Actor = Literal["low", "high"]
"""`low` is the observer. `high` is above it, is another user, or is what a trusted observer must not depend on."""
Form = Literal["purge", "paired"]
"""What world B has in the place of a step of `high`: nothing, or another step of `high`."""

LENGTH = 24
_WORDS = ("tea", "train", "salary", "garden", "winter", "Vienna", "doctor", "violin")
_KEYS = ("plan", "home", "work", "note")
_TAGS = ("red", "blue", "green")
_LIMITS = (1, 2, 3, 10)
_MOST_ITEMS = 3
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Operation:
    """What an adapter offers: the kind of each argument, and whether it only reads."""

    name: str
    arguments: Mapping[str, str]
    reads: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of one actor."""

    actor: Actor
    operation: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items())
        return f"{self.actor:4} {self.operation}({given})"


@dataclass(frozen=True, slots=True)
class Line:
    """One step in each world. A step of `low` is the same in both."""

    in_a: Step | None
    in_b: Step | None

    @property
    def observed(self) -> bool:
        """Whether the observer sees the answer."""
        return self.in_a is not None and self.in_a.actor == "low"

    def __str__(self) -> str:
        if self.in_a == self.in_b:
            return f"both  {self.in_a}"
        sides = (("A", self.in_a), ("B", self.in_b))
        return "\n".join(f"{name:5} {step}" for name, step in sides if step is not None)


Program = Sequence[Line]


def generate(operations: Sequence[Operation], seed: str, length: int = LENGTH) -> Program:
    """The program of *seed*. Half of its steps are the observer's, who at last reads in every way."""
    source = random.Random(seed)
    form: Form = source.choice(("purge", "paired"))
    last = [_step("low", [operation], source) for operation in operations if operation.reads]
    return [*(_line(operations, source, form) for _ in range(length)), *(Line(step, step) for step in last)]


def simpler(program: Program) -> Iterator[Program]:
    """Programs with one argument made smaller, or with nothing in the place of a step of `high` in world B."""
    for at, line in enumerate(program):
        for other in _simpler(line):
            yield [*program[:at], other, *program[at + 1 :]]


def _line(operations: Sequence[Operation], source: random.Random, form: Form) -> Line:
    if source.random() < 0.5:
        step = _step("low", operations, source)
        return Line(step, step)
    step, instead = _step("high", operations, source), _step("high", operations, source)
    return Line(step, instead if form == "paired" else None)


def _step(actor: Actor, operations: Sequence[Operation], source: random.Random) -> Step:
    operation = source.choice(operations)
    return Step(actor, operation.name, {name: _argument(kind, source) for name, kind in operation.arguments.items()})


def _argument(kind: str, source: random.Random) -> Any:
    match kind:
        case "key":
            return source.choice(_KEYS)
        case "text":
            return " ".join(source.choices(_WORDS, k=source.randint(1, _MOST_WORDS)))
        case "query":
            return " ".join(source.sample(_WORDS, source.randint(1, 2)))
        case "tags":
            return source.sample(_TAGS, source.randint(0, 2))
        case "limit":
            return source.choice(_LIMITS)
        case "item":
            return source.randrange(_MOST_ITEMS)
    raise ValueError(f"the kind of an argument is key, text, query, tags, limit or item, not {kind!r}")


def _simpler(line: Line) -> Iterator[Line]:
    if line.observed and line.in_a is not None:
        for step in _smaller(line.in_a):
            yield Line(step, step)
        return
    if line.in_a is not None and line.in_b is not None:
        yield Line(line.in_a, None)
        yield Line(None, line.in_b)
    for step in _smaller(line.in_a):
        yield Line(step, line.in_b)
    for step in _smaller(line.in_b):
        yield Line(line.in_a, step)


def _smaller(step: Step | None) -> Iterator[Step]:
    if step is None:
        return
    for name, value in step.arguments.items():
        for less in _less(value):
            yield replace(step, arguments={**step.arguments, name: less})


def _less(value: Any) -> Iterator[Any]:
    """Smaller values: a text without one of its words, a list without one of its elements."""
    if isinstance(value, str) and " " in value:
        words = value.split()
        yield from (" ".join(words[:at] + words[at + 1 :]) for at in range(len(words)))
    if isinstance(value, list):
        yield from (value[:at] + value[at + 1 :] for at in range(len(value)))
