"""The half of an adapter that all adapters in Python share: it reads operations, and writes answers.

An adapter is a subclass of `Adapter`, and ends with `serve(...)`. Each public method that is marked with `operation` is
one operation.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
Boundary = Literal["above", "another user", "untrusted"]


def operation(*, reads: bool = False, **arguments: str) -> Callable[[Method], Method]:
    """Mark a method as an operation: the kind of each argument, and whether it only reads.

    The method takes the actor, `low` or `high`, and the arguments. The kinds are key, text, query, tags, limit and
    item: a number that stands for one of the items that the actor has saved.
    """

    def mark(method: Method) -> Method:
        method.of_operation = {"arguments": arguments, "reads": reads}  # type: ignore[attr-defined]
        return method

    return mark


class NoSuchItem(Exception):
    """The actor has not saved so many items."""


class Adapter:
    """A memory, as two actors use it."""

    system: ClassVar[str]
    arrangements: ClassVar[Mapping[str, Boundary]]
    """The ways to keep the actors apart, the one that separates best first."""
    made: ClassVar[Mapping[str, str]] = {}
    """Regular expressions of the values that the system makes up, beside uuids and times."""
    refusals: ClassVar[tuple[type[Exception], ...]] = ()
    """What the system raises at a caller: an answer like any other. Any other exception ends the adapter."""

    version: str

    def __init__(self) -> None:
        self.saved: dict[str, list[Any]] = {}
        """The ids of the items that each actor has saved."""

    def begin(self, arrangement: str) -> None:
        """Begin with an empty memory, in *arrangement*."""
        raise NotImplementedError

    def item(self, actor: str, number: int) -> Any:
        """The id of the item of this number. NoSuchItem: the actor has not saved so many."""
        try:
            return self.saved.setdefault(actor, [])[number]
        except IndexError:
            raise NoSuchItem from None

    def answer(self, message: Mapping[str, Any]) -> Any:
        """What the system answers to one message of the protocol."""
        if "begin" in message:
            self.saved.clear()
            self.begin(message["begin"])
            return None
        try:
            called = getattr(self, message["operation"])
            return {"answer": called(message["actor"], **message["arguments"])}
        except _answers(self.refusals) as refusal:
            return {"error": type(refusal).__name__, "message": str(refusal)}

    def description(self) -> Mapping[str, Any]:
        """The first line of the protocol."""
        methods = {name: getattr(getattr(type(self), name), "of_operation", None) for name in dir(type(self))}
        return {
            "system": self.system,
            "version": self.version,
            "arrangements": [{"name": name, "boundary": kind} for name, kind in self.arrangements.items()],
            "operations": {name: marked for name, marked in methods.items() if marked},
            "made": self.made,
        }


def serve(adapter: Adapter) -> None:
    """Answer each line of the standard input, until it ends. What the system prints goes to the standard error."""
    out, sys.stdout = sys.stdout, sys.stderr
    _write(out, adapter.description())
    for line in sys.stdin:
        _write(out, adapter.answer(json.loads(line)))


def _answers(refusals: tuple[type[Exception], ...]) -> tuple[type[Exception], ...]:
    return (NoSuchItem, *refusals)


def _write(out: Any, value: Any) -> None:
    out.write(json.dumps(value, default=_plain) + "\n")
    out.flush()


def _plain(value: Any) -> Any:
    """What JSON has no form for: a dataclass is its members, all else is its text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return str(value)
