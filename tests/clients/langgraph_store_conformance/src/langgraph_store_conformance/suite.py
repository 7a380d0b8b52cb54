"""What all parts of the suite share: what a subject states about itself, and its deviations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Item

Namespace = tuple[str, ...]

HERE: Namespace = ("users", "42")
"""The namespace of a test that needs only one."""


class Order(Enum):
    """The order in which a search without a query returns items. The documentation leaves it to the store."""

    NAMES = "by namespace and key"
    FIRST_PUT = "the first put first, by namespace; a put that replaces an item leaves it in its place"
    LAST_PUT = "the last put first"
    UNSTATED = "not stated: only that each page is a part of the same order"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A test that a store fails, and why. If the store passes it, or fails in another way, the test fails."""

    why: str
    raises: type[BaseException] | tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception)


class Suite:
    """What a subject states: an empty store for each test, and what the documentation leaves open."""

    search_order: ClassVar[Order]

    missing_is_null: ClassVar[bool]
    """Whether filters take a missing field for None, as Python does. In SQL it neither equals nor differs."""

    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError, TypeError, NotImplementedError)
    """The errors with which the store refuses what it cannot keep or do."""

    numbers: ClassVar[st.SearchStrategy[Any]] = st.integers(-12, 12) | st.sampled_from([0.5, -1.5, 9.25])
    """The numbers of random histories."""

    deviations: ClassVar[Mapping[str, Deviation]] = {}
    """By the name of the test."""

    @pytest.fixture
    def store(self) -> BaseStore:
        """An empty store."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `store` that returns an empty store")

    @pytest.fixture(autouse=True)
    def _expect_deviation(self, request: pytest.FixtureRequest) -> None:
        if deviation := self.deviations.get(request.function.__name__):
            request.applymarker(pytest.mark.xfail(reason=deviation.why, raises=deviation.raises, strict=True))

    def accepts(self, store: BaseStore, key: str, value: Mapping[str, Any]) -> bool:
        """Put an item into `HERE`. False if the store refuses it."""
        try:
            store.put(HERE, key, value)
        except self.refusals:
            return False
        return True


def keys(items: Iterable[Item]) -> set[str]:
    """The keys of *items*, each of which must be there once."""
    found = [item.key for item in items]
    assert len(found) == len(set(found)), found
    return set(found)


def names(items: Iterable[Item]) -> list[tuple[Namespace, str]]:
    """The namespaces and keys of *items*, in their order."""
    return [(item.namespace, item.key) for item in items]


def plain(answer: Any) -> Any:
    """An answer without its times."""
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    if isinstance(answer, Item):
        return answer.namespace, answer.key, answer.value
    return answer
