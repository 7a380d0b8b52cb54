"""A conformance suite for LangGraph's `BaseStore`.

A subject is a class that inherits `Contract` and one class of each capability, has a fixture `store`, and states what
the documentation leaves open:

- `ttl`: `Expires` or `RefusesTTL`
- a search with a query: `Ranks` or `IgnoresQueries`
- the fields that it looks at: `ChoosesFields`, `RefusesFields` or `IgnoresFields`
- filters that look into objects: `FiltersNested` or `RefusesNestedFilters`
- the asynchronous methods: `Asynchronous` or `RefusesAsynchronous`
"""

from __future__ import annotations

import pytest

_PARTS = ("batches", "histories", "items", "namespaces", "queries", "searching", "suite", "ttl")
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from .batches import Asynchronous, RefusesAsynchronous  # noqa: E402  # after the line above
from .contract import Contract  # noqa: E402
from .queries import ChoosesFields, IgnoresFields, IgnoresQueries, Ranks, RefusesFields  # noqa: E402
from .reference import Reference  # noqa: E402
from .searching import FiltersNested, RefusesNestedFilters  # noqa: E402
from .suite import Deviation, Order  # noqa: E402
from .ttl import Expires, RefusesTTL  # noqa: E402

__all__ = [
    "Asynchronous",
    "ChoosesFields",
    "Contract",
    "Deviation",
    "Expires",
    "FiltersNested",
    "IgnoresFields",
    "IgnoresQueries",
    "Order",
    "Ranks",
    "Reference",
    "RefusesAsynchronous",
    "RefusesFields",
    "RefusesNestedFilters",
    "RefusesTTL",
]
