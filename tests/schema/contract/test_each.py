"""A loop in one test reports as much as many tests would."""

from __future__ import annotations

import pytest

from tests.support.each import for_each


@for_each("number", [1, 2, 3])
def _is_even(number, divisor):
    assert number % divisor == 0, "odd"


@for_each("number", [])
def _nothing(number):
    raise NotImplementedError


def test_all_failures_are_reported():
    with pytest.raises(AssertionError) as caught:
        _is_even(divisor=2)

    assert "1: odd" in str(caught.value)
    assert "3: odd" in str(caught.value)
    assert "2: odd" not in str(caught.value)


def test_what_checks_nothing_fails():
    with pytest.raises(AssertionError, match="no number"):
        _nothing()
