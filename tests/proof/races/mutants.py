"""Queries with one guard taken out, to prove that a race would show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast
from unittest import mock

from muniment_server.postgres import pool


@contextmanager
def spoiled(queries: Mapping[str, str], name: str, right: str, wrong: str) -> Iterator[None]:
    """The named query with the first *right* replaced by *wrong*, in the table that the scopes execute from."""
    assert right in queries[name], f"{name} reads otherwise by now: choose another mutant"
    with mock.patch.dict(cast("dict[str, str]", queries), {name: queries[name].replace(right, wrong, 1)}):
        yield


@contextmanager
def impatience() -> Iterator[None]:
    """Connections opened within the block wait 50 ms for a lock. A role's own setting would not: the server's wins."""
    assert "lock_timeout" in pool.SETTINGS
    with mock.patch.object(pool, "SETTINGS", {**pool.SETTINGS, "lock_timeout": "50ms"}):
        yield
