"""Queries with one wall taken out, to prove that a race would show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast
from unittest import mock


@contextmanager
def spoiled(queries: Mapping[str, str], name: str, right: str, wrong: str) -> Iterator[None]:
    """The named query with the first *right* replaced by *wrong*, in the table that the store executes from."""
    assert right in queries[name], f"{name} reads otherwise by now: choose another mutant"
    with mock.patch.dict(cast("dict[str, str]", queries), {name: queries[name].replace(right, wrong, 1)}):
        yield
