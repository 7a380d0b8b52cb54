"""Two worlds, seen through an adapter: one where a session above makes the same calls, and one where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from muniment import Classification, MunimentError, SessionClient

Calls = Iterator[Callable[[], Any]]
Adapter = Callable[[SessionClient, str], Calls]
"""Calls through an adapter of a session. What they write has the text in it."""
Opened = Callable[[Classification], SessionClient]

REFUSALS = (MunimentError, OSError, ValueError)


def seen_below(
    opened: Opened, adapter: Adapter, *, above: bool, refusals: tuple[type[Exception], ...] = REFUSALS
) -> list[Any]:
    """What a PUBLIC session sees, while one above makes the same calls in between, or does not."""

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except refusals as error:
            return type(error), getattr(error, "summary", str(error))

    low, high = adapter(opened(Classification.PUBLIC), "low"), adapter(opened(Classification.CONFIDENTIAL), "high")
    seen = []
    for call in low:
        if above:
            with suppress(StopIteration, *refusals):
                next(high)()
        seen.append(outcome(call))
    return seen


def leaking(adapter: Adapter) -> Adapter:
    """A broken copy of an adapter: all of the process use the session of the one that was made last."""
    sessions: list[SessionClient] = []

    class Newest:
        def __getattr__(self, name: str) -> Any:
            return getattr(sessions[-1], name)

    def broken(session: SessionClient, text: str) -> Calls:
        sessions.append(session)
        shared: Any = Newest()
        yield from adapter(shared, text)

    return broken
