"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from muniment._calls import Page
from muniment._listing import RAISES
from muniment.aio._calls import pages
from muniment.errors import TaintChanged

All = TypeVar("All")
Value = TypeVar("Value")


class Listing(AsyncIterator[Value], Generic[Value]):
    """An asynchronous iterator over a list, which fetches each page when it is needed.

    TaintChanged: a host raised the taint between two pages. What was read before it belongs to the old taint: read the
    list again, or use `all`.
    """

    def __init__(self, fetch: Callable[[str], Awaitable[Page]], values: Callable[[Page], Iterable[Value]]) -> None:
        self._read: Callable[[], AsyncIterator[Value]] = lambda: _values(fetch, values)
        self._reading = self._read()

    async def __anext__(self) -> Value:
        return await anext(self._reading)

    async def all(self, *, restart_on_taint_change: bool = False) -> list[Value]:
        """The whole list, from its beginning, read at one single taint.

        TaintChanged: the taint was raised between two pages. With *restart_on_taint_change*, the list is read again
        instead, up to four times, which is how often it can be raised; the result may then contain values of a higher
        level than the taint was when the call began.
        """
        if restart_on_taint_change:
            return await undisturbed(self._all)
        return await self._all()

    async def _all(self) -> list[Value]:
        return [value async for value in self._read()]


async def _values(
    fetch: Callable[[str], Awaitable[Page]], values: Callable[[Page], Iterable[Value]]
) -> AsyncIterator[Value]:
    async for page in pages(fetch):
        for value in values(page):
            yield value


async def undisturbed(call: Callable[[], Awaitable[All]]) -> All:
    """The result of *call*, which is repeated, at most four times, if it raises TaintChanged."""
    for _ in range(RAISES):
        try:
            return await call()
        except TaintChanged:
            continue
    return await call()
