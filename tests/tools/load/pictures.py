"""The pictures of the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.tools.bench import picture
from tests.tools.load.calls import OPERATIONS
from tests.tools.load.cells import PING, Cell
from tests.tools.load.results import Results

BY_SIZE, BY_CLIENTS = "by_size.svg", "by_clients.svg"
_CLIENTS = 16
"""Clients of the picture by size, if they were measured."""


def draw(results: Results, folder: Path) -> None:
    """Write the pictures into *folder*."""
    clients = fixed_clients(results)
    of_clients = [cell for cell in results.cells if cell.clients == clients]
    of_size = [cell for cell in results.cells if cell.items == results.sizes[-1]]
    share = f"{100 * results.plan.share:g} % of what they can reach"
    (folder / BY_SIZE).write_text(
        picture.panels(
            "Latency by number of stored memories",
            f"Mixed load of {clients} clients, offered {share}; searches by words. Gray: a gRPC ping at the same rate.",
            _charts(of_clients, lambda cell: cell.items),
        ),
        "utf-8",
    )
    (folder / BY_CLIENTS).write_text(
        picture.panels(
            "Latency by number of clients",
            f"Mixed load on {results.sizes[-1]:,} memories, offered {share}; searches by words. "
            "Gray: a gRPC ping at the same rate.",
            _charts(of_size, lambda cell: cell.clients),
        ),
        "utf-8",
    )


def fixed_clients(results: Results) -> int:
    """The number of clients that the picture by size shows."""
    clients = results.plan.clients
    return _CLIENTS if _CLIENTS in clients else clients[-1]


def _charts(cells: Sequence[Cell], x: Callable[[Cell], float]) -> Mapping[str, picture.Lines]:
    return {operation: lines for operation in OPERATIONS if (lines := _lines(cells, x, operation))["p50"]}


def _lines(cells: Sequence[Cell], x: Callable[[Cell], float], operation: str) -> picture.Lines:
    """The percentiles of one operation, without points for which there were too few calls; and the ping."""
    measured = [(cell, found) for cell in cells if (found := cell.figures(operation)).calls]
    lines = {
        "p50": [(x(cell), found.p50) for cell, found in measured],
        "p95": [(x(cell), found.p95) for cell, found in measured],
        "p99": [(x(cell), found.p99) for cell, found in measured],
        "ping, p50": [(x(cell), cell.baselines[PING].p50) for cell, _ in measured],
    }
    return {name: [point for point in line if not math.isnan(point[1])] for name, line in lines.items()}
