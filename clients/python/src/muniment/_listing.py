"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from muniment._calls import Page, pages
from muniment.errors import TaintChanged
from muniment.values import Classification

All = TypeVar("All")
Value = TypeVar("Value")

RAISES = len(Classification)
"""How often a conversation can be raised: thrice to a higher level, once to UNTRUSTED."""


class Listing(Iterator[Value], Generic[Value]):
    """An iterator over a list, which fetches each page when it is needed.

    TaintChanged: a host raised the taint between two pages. What was read before it belongs to the old taint: read the
    list again, or use `all`.
    """

    def __init__(self, fetch: Callable[[str], Page], values: Callable[[Page], Iterable[Value]]) -> None:
        self._read: Callable[[], Iterator[Value]] = lambda: chain.from_iterable(map(values, pages(fetch)))
        self._reading = self._read()

    def __next__(self) -> Value:
        return next(self._reading)

    def all(self, *, restart_on_taint_change: bool = False) -> list[Value]:
        """The whole list, from its beginning, all of it read at one taint.

        TaintChanged: the taint was raised between two pages. With *restart_on_taint_change*, the list is read again
        instead, up to four times, which is how often it can be raised; the result may then contain values of a higher
        level than the taint was when the call began.
        """
        if restart_on_taint_change:
            return undisturbed(lambda: list(self._read()))
        return list(self._read())


def undisturbed(call: Callable[[], All]) -> All:
    """The result of *call*, which is repeated, at most four times, if it raises TaintChanged."""
    for _ in range(RAISES):
        try:
            return call()
        except TaintChanged:
            continue
    return call()
