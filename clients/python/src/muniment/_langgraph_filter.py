"""The filters of LangGraph's searches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def require_filter(wanted: Mapping[str, Any]) -> None:
    """Refuse, before any value is read, a filter with an unknown operator, or with nothing to compare with."""
    for each in wanted.values():
        _require_condition(each)


def _require_condition(wanted: Any) -> None:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            for name, to in wanted.items():
                _compares(None, name, to)
        else:
            require_filter(wanted)
    elif isinstance(wanted, list | tuple):
        for each in wanted:
            _require_condition(each)


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether *value* matches a filter."""
    return all(_fits(value.get(name), each) for name, each in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value equals *wanted*, or satisfies comparisons such as `{"$gt": …}`; also inside lists and objects."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, to) for name, to in wanted.items())
        return isinstance(value, dict) and passes(value, wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_fits, value, wanted))
    return _same(value, wanted)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON. To Python, True also equals 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _compares(value: Any, name: str, to: Any) -> bool:
    if name == "$eq":
        return _same(value, to)
    if name == "$ne":
        return not _same(value, to)
    if name not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}")
    limit = _number(to)
    if limit is None:
        raise ValueError(f"{name} compares numbers only")
    number = _number(value)
    return number is not None and _COMPARISONS[name](number, limit)


def _number(value: Any) -> float | None:
    """*value* as a number, or as the number that a text such as "3.5" is; None for anything else."""
    if isinstance(value, int):
        return value  # It may be too large for a float, and compares with one all the same.
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
