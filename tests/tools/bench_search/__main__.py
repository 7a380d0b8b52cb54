"""`make bench-search`: what searches by words and saves cost among up to a million items, beside ILIKE and ts_rank_cd.

All runs of one size ask the same questions of the same rows, one after the other, warm.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from muniment_server.domain.classification import Classification
from tests.tools.bench import picture
from tests.tools.bench.processes import serving
from tests.tools.bench_search.corpus import Source, sizes
from tests.tools.bench_search.loading import SHARES, load, new_owners
from tests.tools.bench_search.measure import Bench, Times, index_bytes, times
from tests.tools.eval.folder import data_option

_CONSOLE = Console(width=132)
_MANY = 1000
"""Agents among which items are dealt out, beside one that has all."""
_SAVES = 50
_LEVELS = {Classification.PUBLIC: SHARES[Classification.PUBLIC], Classification.RESTRICTED: 1.0}
"""From where one and four levels are visible, and which part of the items that is."""


class Row(NamedTuple):
    """What was measured in one database from one level."""

    items: int
    agents: int
    level: Classification
    visible: int
    search: Times
    statements: Times
    ilike: Times
    ts_rank_cd: Times
    save: Times
    bytes: int
    """What the index of words takes for one item."""


@click.command(epilog="Example: make bench-search ARGS='--sizes 1e4,1e5 --svg search.svg'")
@click.option("--sizes", "wanted", default="1e4,1e5,1e6", show_default=True, help="Numbers of items.")
@click.option("--queries", default=100, show_default=True, help="Searches of each kind; of ILIKE a tenth of it.")
@data_option
@click.option("--svg", default=None, type=click.Path(path_type=Path), help="Where to draw how cost grows.")
def main(wanted: str, queries: int, data: Path, svg: Path | None) -> None:
    """Measure search on this machine. A million items take most of an hour: they are loaded twice."""
    rows: list[Row] = []
    with Progress(console=Console(stderr=True)) as progress:
        for items in sizes(wanted):
            for agents in (1, _MANY):
                rows += _measured(Source(data), items, agents, queries, progress)
    _report(rows)
    if svg:
        svg.write_text(_drawn(rows), "utf-8")


def _measured(source: Source, items: int, agents: int, queries: int, progress: Progress) -> Iterator[Row]:
    folder = Path(tempfile.mkdtemp(prefix="muniment-bench-search-"))
    folder.chmod(0o711)
    try:
        with serving(folder, workers=1, threads=4, words_alone=True) as service:
            task = progress.add_task(f"{items:,} items of {agents:,}", total=items)
            load(
                service.conninfo, source.items(2 * items), owners=new_owners(service.conninfo, agents), count=items,
                done=lambda more: progress.advance(task, more),
            )  # fmt: skip
            kept = index_bytes(service) // items
            for level, part in _LEVELS.items():
                with closing(Bench(service, "agent1", level)) as bench:
                    visible = max(1, round(items * part / agents))
                    yield _row(bench, source, queries, (items, agents, level, visible), kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _row(bench: Bench, source: Source, queries: int, of: tuple[int, int, Classification, int], kept: int) -> Row:
    asked = source.queries(queries)
    few = asked[: max(2, queries // 10)]
    times(bench.search, asked)  # warms what is asked for
    return Row(
        *of,
        search=times(bench.search, asked),
        statements=times(bench.statements, asked),
        ilike=times(bench.ilike, few),
        ts_rank_cd=times(bench.ts_rank_cd, few),
        save=times(bench.save, source.items(_SAVES)),
        bytes=kept,
    )


def _report(rows: list[Row]) -> None:
    table = Table(title="search by words alone: milliseconds, p50 / p95")
    for heading in (
        "items", "agents", "level", "visible", "search", "its SQL", "ILIKE", "ts_rank_cd", "save", "words' index",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for row in rows:
        shown = [f"{one.p50:,.1f} / {one.p95:,.1f}" for one in row if isinstance(one, Times)]
        table.add_row(
            f"{row.items:,}", f"{row.agents:,}", str(int(row.level)), f"{row.visible:,}", *shown, f"{row.bytes:,}"
        )
    _CONSOLE.print(table)
    _CONSOLE.print(
        "save: its transaction with its index; words' index: bytes an item. To reach: p95 of search 25 ms at 6,000"
        " visible, 180 ms at 100,000, 250 ms at 1,000,000; save 2 ms"
    )


def _drawn(rows: list[Row]) -> str:
    lines: dict[str, list[picture.Point]] = {}
    for row in rows:
        of = (
            f"{int(row.level)} of 4 levels, {row.agents:,} agents"
            if row.agents > 1
            else f"{int(row.level)} of 4 levels"
        )
        lines.setdefault(f"search, {of}", []).append((row.items, row.search.p95))
        if row.agents == 1 and row.level is Classification.RESTRICTED:
            lines.setdefault("ILIKE", []).append((row.items, row.ilike.p95))
            lines.setdefault("ts_rank_cd", []).append((row.items, row.ts_rank_cd.p95))
    return picture.svg("p95 by number of items", lines)


if __name__ == "__main__":
    main()
