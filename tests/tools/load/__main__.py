"""`make load` and `make load-report`: how the service answers a mixed load, by size and number of clients.

The load does not wait for answers, and latencies are counted from when a call was due. The store of one server grows
from size to size. A ping and bare statements are measured beside each cell, other systems beside the smallest store.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.tools.bench_search.corpus import sizes
from tests.tools.eval.folder import data_option
from tests.tools.load import report
from tests.tools.load.cells import Times
from tests.tools.load.results import Plan
from tests.tools.load.run import Runner

_SHOWN = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
_FRESH = 20
_BASELINE_SECONDS = 3.0
_ARGUMENTS = "tests.tools.load.arguments"
_QUICK = Plan(
    sizes=[200, 400], clients=[1, 4], workers=[1], times=Times(1.0, 1.0, 1.0), share=0.5, real_vectors=2, fresh=1
)


def _numbers(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    try:
        return sizes(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers, such as 1e3,1e4") from None


class _Recorded(click.Command):
    """A command that keeps its arguments as they were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


@click.command(
    cls=_Recorded,
    epilog="Examples: make load ARGS='--sizes 1e4 --clients 64'; make load ARGS='--quick --report /tmp/load'. "
    "make load-report passes the sizes, clients and workers of the published report.",
)
@click.option("--sizes", "wanted", default="1e3,1e4", show_default=True, callback=_numbers, help="Memories stored.")
@click.option("--clients", default="1,16,64", show_default=True, callback=_numbers, help="Sessions that call.")
@click.option(
    "--workers", default="2,1", show_default=True, callback=_numbers,
    help="Worker processes. The first number serves all cells, the others are compared with it.",
)  # fmt: skip
@click.option("--seconds", default=8.0, show_default=True, help="Seconds of the load of each cell.")
@click.option("--share", default=0.5, show_default=True, help="The part of its capacity that a cell is offered.")
@click.option(
    "--real-vectors", default=500, show_default=True, help="Embeddings that the model makes; the others are drawn."
)
@data_option
@click.option("--report", "folder", type=click.Path(path_type=Path), help="Where to write tables, CSV and pictures.")
@click.option("--quick", is_flag=True, help="The smallest run, in two minutes: to see that everything works.")
def main(
    wanted: Sequence[int], clients: Sequence[int], workers: Sequence[int], seconds: float, share: float,
    real_vectors: int, data: Path, folder: Path | None, quick: bool,
) -> None:  # fmt: skip
    """Measure the service under a mixed load on this machine. Takes about six minutes."""
    arguments = click.get_current_context().meta[_ARGUMENTS]
    times = Times(seconds, _BASELINE_SECONDS, _BASELINE_SECONDS)
    plan = _QUICK if quick else Plan(sorted(wanted), sorted(clients), workers, times, share, real_vectors, _FRESH)
    written = folder or Path(tempfile.mkdtemp(prefix="muniment-load-"))
    with Progress(*_SHOWN, console=Console(stderr=True)) as progress:
        for results in Runner(plan, data, progress).run():
            report.write(
                results, written, command=shlex.join([".venv/bin/python", "-m", "tests.tools.load", *arguments])
            )
    click.echo(f"The report: {written / 'README.md'}")


if __name__ == "__main__":
    main()
