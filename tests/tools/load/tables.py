"""The results as tables, for people in Markdown and for programs in CSV."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.tools.bench.usage import Usage
from tests.tools.load.calls import OPERATIONS
from tests.tools.load.cells import Cell
from tests.tools.load.figures import Figures, refused
from tests.tools.load.results import Results

_CELL = ("items", "clients", "workers", "embeddings")
_FIGURES = ("calls", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms")
_USED = Usage._fields

Row = Sequence[str]


def markdown(headings: Row, rows: Iterable[Row]) -> str:
    """A table, whose columns but the first are aligned to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def milliseconds(value: float) -> str:
    """A latency for people: two digits or more. A dash where there were too few calls."""
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def percentiles(figures: Figures) -> str:
    """p50/p95/p99."""
    return "/".join(map(milliseconds, [figures.p50, figures.p95, figures.p99]))


def all_cells(results: Results) -> Sequence[Cell]:
    """Each cell once."""
    return [*results.cells, *(cell for cell in results.by_workers if cell not in results.cells), *results.semantic]


def write_csv(results: Results, folder: Path) -> None:
    """The figures of each cell, of what was measured beside them, of other systems, and every single call."""
    _write(folder / "cells.csv", [*_CELL, "operation", "refused", *_FIGURES], _operations(results))
    _write(
        folder / "costs.csv",
        [
            *_CELL, "capacity_per_s", "offered_per_s", "answered_per_s", "refused", "late_p99_ms",
            *(f"{part}_cpu_us_per_call" for part in _USED), *(f"{part}_mib" for part in _USED), "waiting",
        ],
        _costs(results),
    )  # fmt: skip
    _write(folder / "baselines.csv", [*_CELL, "baseline", *_FIGURES], _baselines(results))
    _write(
        folder / "side_by_side.csv",
        ["system", "operation", "callers", "calls_per_s", *_FIGURES, *(f"{part}_cpu_us_per_call" for part in _USED)],
        ([one.system, one.operation, one.callers, one.per_second, *one.figures, *one.cpu] for one in results.lines),
    )
    calls = io.StringIO()
    writer = csv.writer(calls, lineterminator="\n")
    writer.writerow([*_CELL, "operation", "start_s", "late_s", "latency_s", "status"])
    writer.writerows(_calls(results))
    (folder / "calls.csv.gz").write_bytes(gzip.compress(calls.getvalue().encode(), mtime=0))


def _operations(results: Results) -> Iterator[Sequence[object]]:
    for cell in all_cells(results):
        for operation in OPERATIONS:
            calls = [call for call in cell.run.calls if call.operation == operation]
            if calls:
                yield [*_key(cell), operation, refused(calls).total(), *cell.figures(operation)]


def _costs(results: Results) -> Iterator[Sequence[object]]:
    for cell in all_cells(results):
        yield [
            *_key(cell), cell.capacity, cell.rate, cell.run.per_second, refused(cell.run.calls).total(),
            cell.late.p99, *cell.cpu, *cell.memory, cell.queued,
        ]  # fmt: skip


def _baselines(results: Results) -> Iterator[Sequence[object]]:
    for cell in all_cells(results):
        for name, figures in cell.baselines.items():
            yield [*_key(cell), name, *figures]


def _calls(results: Results) -> Iterator[Sequence[object]]:
    for cell in all_cells(results):
        for call in cell.run.calls:
            times = (f"{seconds:.6f}" for seconds in (call.start, call.late, call.latency))
            yield [*_key(cell), call.operation, *times, call.status]


def _key(cell: Cell) -> Sequence[object]:
    return cell.items, cell.clients, cell.workers, int(cell.semantic)


def _write(path: Path, headings: Row, rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows(map(_field, row) for row in rows)


def _field(value: object) -> object:
    """Numbers with six digits; nothing where there is no number."""
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.6g}"
