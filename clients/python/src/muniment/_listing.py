"""Reading all of something that comes in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muniment.errors import TaintChanged
from muniment.values import Classification

All = TypeVar("All")


def undisturbed(read_all: Callable[[], All]) -> All:
    """What *read_all* gives, begun anew when the taint is raised between two pages. It can be raised so often only."""
    for _ in list(Classification)[1:]:
        try:
            return read_all()
        except TaintChanged:
            continue
    return read_all()
