"""What the metrics of a server say at one moment."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


@dataclass(frozen=True, slots=True)
class Reading:
    """The metrics of a server at one moment."""

    samples: dict[str, list[Sample]]

    @classmethod
    def parse(cls, text: str) -> Reading:
        """The reading in *text*, in the format of Prometheus. Raises ValueError if these are no metrics of a server."""
        samples = defaultdict(list)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples[sample.name].append(sample)
        if "muniment_database_up" not in samples:
            raise ValueError("whether the database answers is not among them")
        return cls(samples)

    def value(self, name: str) -> float | None:
        """The value of a metric without labels but that of the database server, whose values are added up.

        None if it is not there.
        """
        values = [sample.value for sample in self._of(name) if sample.labels.keys() <= {"server"}]
        return sum(values) if values else None

    def lowest(self, name: str) -> float | None:
        """The lowest value of a metric. None if it is not there."""
        return min((sample.value for sample in self._of(name)), default=None)

    def by(self, name: str, label: str) -> dict[str, float]:
        """The values of a metric, added up by one of its labels."""
        sums: dict[str, float] = defaultdict(float)
        for sample in self._of(name):
            sums[sample.labels.get(label, "")] += sample.value
        return dict(sums)

    def label(self, name: str, label: str) -> str | None:
        """One label of a metric: of its samples, the first that is not empty. None if there is none."""
        return next((found for sample in self._of(name) if (found := sample.labels.get(label, ""))), None)

    def _of(self, name: str) -> list[Sample]:
        return self.samples.get(name, [])
