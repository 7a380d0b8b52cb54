"""What the metrics of a server say at one moment, and what was counted between two moments."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
_LONGEST_LINE = 64 * 1024
"""In characters. The parser takes minutes for a line of a few megabytes."""
_HIGHEST = 1e18
"""No metric of a server is as high. Values beyond it, of either sign, are left out, and so is NaN."""


class NotMetrics(ValueError):
    """A text does not contain the metrics of a server."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The metrics of a server at one moment."""

    time: float
    """In seconds, by a clock that is never set."""
    samples: Mapping[str, Mapping[Labels, float]]

    @classmethod
    def parse(cls, text: str, time: float) -> Reading:
        """The reading in *text*, in the format of Prometheus. Raises NotMetrics.

        A text that was cut off is refused: its last value could be wrong. Values that cannot be true are left out.
        """
        if not text.endswith("\n") or any(len(line) > _LONGEST_LINE for line in text.split("\n")):
            raise NotMetrics
        samples: dict[str, dict[Labels, float]] = defaultdict(dict)
        try:
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    if abs(sample.value) <= _HIGHEST:  # false for NaN
                        samples[sample.name][frozenset(sample.labels.items())] = sample.value
        except (ValueError, LookupError, ArithmeticError) as error:  # what the parser raises depends on the text
            raise NotMetrics from error
        if "muniment_database_up" not in samples:
            raise NotMetrics
        return cls(time, samples)

    def value(self, name: str) -> float | None:
        """The value of a metric without labels but that of the database server, whose values are added up.

        None if it is not there.
        """
        values = [value for labels, value in self.samples.get(name, {}).items() if dict(labels).keys() <= {"server"}]
        return sum(values) if values else None

    def lowest(self, name: str) -> float | None:
        """The lowest value of a metric. None if it is not there."""
        return min(self.samples.get(name, {}).values(), default=None)

    def by(self, name: str, label: str) -> dict[str, float]:
        """The values of a metric, added up by one of its labels."""
        return _by(self.samples.get(name, {}), label)

    def label(self, name: str, label: str) -> str:
        """One label of a metric: of its samples, the first that has it. Empty if none has."""
        return next((found for labels in self.samples.get(name, {}) if (found := dict(labels).get(label, ""))), "")


@dataclass(frozen=True, slots=True)
class Change:
    """What was counted between two readings of a server."""

    before: Reading
    after: Reading

    def rates(self, name: str, label: str) -> dict[str, float]:
        """How much a counter grew in a second, by one of its labels. 0 if both readings are the same."""
        seconds = self.after.time - self.before.time or math.inf
        return {key: value / seconds for key, value in _by(self._increases(name), label).items()}

    def quantile(self, share: float, histogram: str, label: str) -> dict[str, float]:
        """The quantile of what a histogram observed, by one of its labels. Without those that observed nothing."""
        found: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for labels, increase in self._increases(f"{histogram}_bucket").items():
            each = dict(labels)
            if (bound := _bound(each.get("le", ""))) is not None:
                found[each.get(label, "")][bound] += increase
        return {key: value for key, each in found.items() if (value := quantile(share, each)) is not None}

    def _increases(self, name: str) -> dict[Labels, float]:
        """A counter that is lower than before began again at 0: the server was restarted."""
        before = self.before.samples.get(name, {})
        after = self.after.samples.get(name, {})
        return {key: _increase(before.get(key, 0.0), value) for key, value in after.items()}


def quantile(share: float, buckets: Mapping[float, float]) -> float | None:
    """The value below which this *share* of the observations is; None if there is no observation.

    *buckets* has the number of observations up to each bound. It is interpolated as Prometheus's `histogram_quantile`
    does: what is above the highest finite bound counts as that bound.
    """
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return None
    rank = share * buckets[bounds[-1]]
    index = next(index for index, bound in enumerate(bounds) if buckets[bound] >= rank)
    begin, below = (bounds[index - 1], buckets[bounds[index - 1]]) if index else (0.0, 0.0)
    if math.isinf(bounds[index]):
        return begin
    return begin + (bounds[index] - begin) * (rank - below) / (buckets[bounds[index]] - below)


def moment(seconds: float | None) -> datetime | None:
    """The time so many *seconds* after the beginning of 1970. None if there are none, or a datetime cannot hold it."""
    try:
        return None if seconds is None else datetime.fromtimestamp(round(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _bound(text: str) -> float | None:
    """The bound of a bucket in seconds, which may be infinite. None if *text* is no duration."""
    try:
        bound = float(text)
    except ValueError:
        return None
    return bound if 0 <= bound <= _HIGHEST or bound == math.inf else None


def _by(samples: Mapping[Labels, float], label: str) -> dict[str, float]:
    return _sums((dict(labels).get(label, ""), value) for labels, value in samples.items())


def _sums(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for key, value in pairs:
        sums[key] += value
    return dict(sums)


def _increase(before: float, after: float) -> float:
    return after - before if after >= before else after
