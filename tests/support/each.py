"""Many small checks in one test, which reports all that fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def for_each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the test for each of *values*, given as its argument *name*, and report every one for which it fails.

    `pytest.mark.parametrize` would make a test of each: too many to collect, for checks of microseconds.
    """
    every = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def checked(**fixtures: Any) -> None:
            assert every, f"there is no {name} to check"
            findings = []
            for value in every:
                try:
                    test(**{name: value}, **fixtures)
                except AssertionError as error:
                    findings.append(f"{value}: {error}")
            assert not findings, "\n".join(["", *findings])

        signature = inspect.signature(test)
        fixtures = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        checked.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return checked

    return decorate
