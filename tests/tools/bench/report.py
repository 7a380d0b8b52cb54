"""What was measured, as tables: figures, and ratios of figures of the same round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.tools.bench.measure import Result, Spread

Rounds = Mapping[str, Sequence[Result]]
"""The results of each load, one for each round."""


class Ratio(NamedTuple):
    """One load compared with another."""

    name: str
    load: str
    baseline: str
    figure: Callable[[Result], float]
    goal: str = ""


def figures(rounds: Rounds) -> Table:
    """Throughput, CPU and latency of each load."""
    table = Table(title="min / median / max of the rounds; latencies: medians")
    for heading in ("", "calls per s", "server CPU per call, us", "p50, ms", "p99, ms"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, results in rounds.items():
        cpu = _spread((result.cpu_microseconds for result in results), "{:.0f}") if results[0].cpu_seconds else ""
        table.add_row(
            name,
            _spread((result.per_second for result in results), "{:,.0f}"),
            cpu,
            f"{Spread.of(result.p50 for result in results).median * 1000:.1f}",
            f"{Spread.of(result.p99 for result in results).median * 1000:.1f}",
        )
    return table


def ratios(rounds: Rounds, wanted: Sequence[Ratio]) -> Table:
    """Each ratio, taken round by round: what slows a whole round down does not change it."""
    table = Table(title="ratios, min / median / max of the rounds")
    for heading in ("", "ratio", "goal"):
        table.add_column(heading, justify="right" if heading == "ratio" else "left")
    for ratio in wanted:
        pairs = zip(rounds[ratio.load], rounds[ratio.baseline], strict=True)
        values = (ratio.figure(result) / ratio.figure(baseline) for result, baseline in pairs)
        table.add_row(ratio.name, _spread(values, "{:.2f}"), ratio.goal)
    return table


def show(console: Console, rounds: Rounds, wanted: Sequence[Ratio]) -> None:
    """Print both tables."""
    console.print(figures(rounds))
    console.print(ratios(rounds, wanted))


def _spread(values: Iterable[float], form: str) -> str:
    return " / ".join(form.format(value) for value in Spread.of(values))
