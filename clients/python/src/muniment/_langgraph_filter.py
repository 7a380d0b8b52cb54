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
    return bool(value == wanted)


def _compares(value: Any, name: str, to: Any) -> bool:
    if name == "$eq":
        return bool(value == to)
    if name == "$ne":
        return bool(value != to)
    if name not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}")
    try:
        return _COMPARISONS[name](float(value), float(to))
    except (TypeError, ValueError):
        return False
