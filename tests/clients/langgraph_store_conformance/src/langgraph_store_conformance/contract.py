"""All that every store must do, and a check that a subject is complete."""

from __future__ import annotations

from typing import Any

from .batches import Asynchronous, Batches, RefusesAsynchronous
from .histories import Histories
from .items import Items, Keys, Times
from .namespaces import Isolation, Labels, Listing
from .queries import ChoosesFields, IgnoresFields, IgnoresQueries, Ranks, RefusesFields
from .searching import Filters, FiltersNested, RefusesNestedFilters, Searches
from .suite import Suite
from .ttl import Expires, RefusesTTL

CAPABILITIES: tuple[tuple[type[Suite], ...], ...] = (
    (Expires, RefusesTTL),
    (Ranks, IgnoresQueries),
    (ChoosesFields, RefusesFields, IgnoresFields),
    (FiltersNested, RefusesNestedFilters),
    (Asynchronous, RefusesAsynchronous),
)
"""Of each, a subject has exactly one."""


class Contract(Items, Keys, Times, Searches, Filters, Labels, Isolation, Listing, Batches, Histories):
    """The tests that every store must pass."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check the subject when it is defined, so that nothing is left out by mistake. TypeError: what is wrong."""
        super().__init_subclass__(**kwargs)
        for choices in CAPABILITIES:
            if sum(issubclass(cls, one) for one in choices) != 1:
                raise TypeError(f"{cls.__name__} must inherit one of {', '.join(one.__name__ for one in choices)}")
        for name in ("search_order", "missing_is_null"):
            if not hasattr(cls, name):
                raise TypeError(f"{cls.__name__} must state {name}")
        parts = [part for part in cls.__mro__ if part.__module__.startswith(f"{__package__}.")]
        tests = {name: vars(part)[name] for part in parts for name in vars(part) if name.startswith("test_")}
        if unknown := [name for name in cls.deviations if name not in tests]:
            raise TypeError(f"{cls.__name__} deviates in what is no test of it: {', '.join(unknown)}")
        if replaced := [name for name, test in tests.items() if getattr(cls, name) is not test]:
            raise TypeError(f"{cls.__name__} replaces tests; name them in `deviations` instead: {', '.join(replaced)}")
