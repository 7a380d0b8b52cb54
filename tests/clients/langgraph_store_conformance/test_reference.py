"""The reference deviates in nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from langgraph_store_conformance import (
    Asynchronous,
    Contract,
    Expires,
    FiltersNested,
    IgnoresFields,
    IgnoresQueries,
    Order,
    Reference,
)


class TestReference(Contract, Expires, IgnoresQueries, IgnoresFields, FiltersNested, Asynchronous):
    """No deviations."""

    search_order = Order.NAMES
    missing_is_null = True

    @pytest.fixture
    def store(self) -> Reference:
        return Reference()

    def pass_time(self, store: Any, minutes: float) -> None:
        before = store.now
        store.now = lambda: before() + timedelta(minutes=minutes)
