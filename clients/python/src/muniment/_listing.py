"""Reads all pages of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muniment.errors import TaintChanged
from muniment.values import Classification

All = TypeVar("All")


def undisturbed(read_all: Callable[[], All]) -> All:
    """The result of *read_all*. Starts over if the taint is raised between two pages: at most three times."""
    for _ in list(Classification)[1:]:
        try:
            return read_all()
        except TaintChanged:
            continue
    return read_all()
