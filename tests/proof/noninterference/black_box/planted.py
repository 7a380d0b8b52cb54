"""Leaks planted on purpose. An adapter in whose system they are not found counts for nothing.

Each works on the answers of the real system: it adds what a careless system would give away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from .programs import Step
from .systems import System


class Planted(ABC):
    """A system with one leak more."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.description = system.description
        self._reads = {each.name for each in system.description.operations if each.reads}
        self._hidden: list[Step] = []
        self._step: Step | None = None

    def begin(self, arrangement: str) -> None:
        """Begin with an empty memory."""
        self._hidden.clear()
        self._system.begin(arrangement)

    def send(self, step: Step) -> None:
        """Start one operation."""
        self._step = step
        self._system.send(step)

    def receive(self) -> Any:
        """The answer of the system. The observer's has the leak."""
        answer, step = self._system.receive(), self._step
        assert step is not None
        if step.actor == "low":
            return self._leaking(step, answer)
        if step.operation not in self._reads:
            self._hidden.append(step)
        return answer

    @abstractmethod
    def _leaking(self, step: Step, answer: Any) -> Any: ...


class ForgottenFilter(Planted):
    """A read forgets whose items it may return: it returns those of `high` too."""

    def _leaking(self, step: Step, answer: Any) -> Any:
        if step.operation not in self._reads:
            return answer
        self._system.send(replace(step, actor="high"))
        return [answer, self._system.receive()]


class SharedCounter(Planted):
    """A write returns a number from a sequence that everybody shares."""

    def _leaking(self, step: Step, answer: Any) -> Any:
        return answer if step.operation in self._reads else [answer, len(self._hidden)]


class SharedRanking(Planted):
    """How often `high` wrote decides the order of what `low` reads."""

    def _leaking(self, step: Step, answer: Any) -> Any:
        turned = step.operation in self._reads and len(self._hidden) % 2
        return _reversed(answer) if turned else answer


class Existence(Planted):
    """A read says "not allowed", and not "not found", where `high` has written under the same argument."""

    def _leaking(self, step: Step, answer: Any) -> Any:
        asked = {value for value in step.arguments.values() if isinstance(value, str)}
        used = {value for hidden in self._hidden for value in hidden.arguments.values() if isinstance(value, str)}
        words = used | {word for text in used for word in text.split()}
        return [answer, "not allowed"] if step.operation in self._reads and asked & words else answer


LEAKS: dict[str, type[Planted]] = {
    "forgotten filter": ForgottenFilter,
    "shared counter": SharedCounter,
    "shared ranking": SharedRanking,
    "existence": Existence,
}


def _reversed(answer: Any) -> Any:
    """*answer* with its lists reversed, at every depth."""
    if isinstance(answer, list):
        return [_reversed(each) for each in reversed(answer)]
    if isinstance(answer, dict):
        return {name: _reversed(value) for name, value in answer.items()}
    return answer
