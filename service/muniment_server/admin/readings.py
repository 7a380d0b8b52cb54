"""What the metrics of a server say at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

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

    samples: Mapping[str, Mapping[Labels, float]]

    @classmethod
    def parse(cls, text: str) -> Reading:
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
        return cls(samples)

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
        sums: dict[str, float] = defaultdict(float)
        for labels, value in self.samples.get(name, {}).items():
            sums[dict(labels).get(label, "")] += value
        return dict(sums)

    def label(self, name: str, label: str) -> str | None:
        """One label of a metric: of its samples, the first that is not empty. None if there is none."""
        return next((found for labels in self.samples.get(name, {}) if (found := dict(labels).get(label, ""))), None)
