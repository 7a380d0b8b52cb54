"""Percentiles of measured latencies: no buckets, every call counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.tools.load.calls import Call

_PERCENTILES = {0.5: 1, 0.95: 20, 0.99: 100, 0.999: 1000, 1.0: 1}
"""How many calls each percentile needs: among fewer, it would be the slowest call."""


class Figures(NamedTuple):
    """Latencies of some calls, in milliseconds. Not a number where there were too few calls."""

    calls: int
    p50: float
    p95: float
    p99: float
    p999: float
    slowest: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Figures:
        """The figures of some latencies in seconds."""
        ordered = sorted(seconds)
        percentiles = (
            1000 * _percentile(ordered, part) if len(ordered) >= fewest else math.nan
            for part, fewest in _PERCENTILES.items()
        )
        return cls(len(ordered), *percentiles)


def of_calls(calls: Iterable[Call]) -> Figures:
    """The figures of the calls that succeeded."""
    return Figures.of(call.latency for call in calls if call.status == "OK")


def refused(calls: Iterable[Call]) -> Counter[str]:
    """How many calls did not succeed, by status."""
    return Counter(call.status for call in calls if call.status != "OK")


def _percentile(ordered: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]
