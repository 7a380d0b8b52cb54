"""The asyncio client with the surface of the synchronous one, so that the same tests test both."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from muniment import aio


class Blocking:
    """An asyncio client whose every call is waited for."""

    def __init__(self, client: aio.HostClient | aio.SessionClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return self._waiting(found) if inspect.ismethod(found) else found

    def _waiting(self, method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            given = [each._client if isinstance(each, Blocking) else each for each in arguments]
            return made_blocking(method(*given, **named), self._runner)

        return call

    def __enter__(self) -> Blocking:
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._runner.run(self._client.__aexit__(*error))

    def __repr__(self) -> str:
        return repr(self._client)


class BlockingListing:
    """An asynchronous list, read in a `for`."""

    def __init__(self, listing: aio.Listing[Any], runner: asyncio.Runner) -> None:
        self._listing = listing
        self._runner = runner

    def __iter__(self) -> BlockingListing:
        return self

    def __next__(self) -> Any:
        try:
            return self._runner.run(self._listing.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def all(self, **options: Any) -> Any:
        return self._runner.run(self._listing.all(**options))


def made_blocking(value: Any, runner: asyncio.Runner) -> Any:
    """What the synchronous client would return."""
    if inspect.iscoroutine(value):
        return made_blocking(runner.run(value), runner)
    if isinstance(value, aio.HostClient | aio.SessionClient):
        return Blocking(value, runner)
    return BlockingListing(value, runner) if isinstance(value, aio.Listing) else value
