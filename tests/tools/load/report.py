"""The report of a run: a page, its pictures, and the raw data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.tools.load import comparisons, pictures
from tests.tools.load.calls import GET, MIX, OPERATIONS, SAVE, SEARCH
from tests.tools.load.cells import PING, SAVE_ITEM, SELECT, Cell
from tests.tools.load.figures import Figures, refused
from tests.tools.load.results import Results
from tests.tools.load.tables import markdown, milliseconds, percentiles, write_csv
from tests.tools.load.vectors import NEAR
from tests.tools.load.world import AGENTS

_FRESH = ("memories", "drawn vectors", "idle: by words", "by embedding", "loaded: by words", "by embedding")
_FOUR = "p50 / p95 / p99 / p99.9"


def write(results: Results, folder: Path, *, command: str) -> None:
    """Write the report of a run by *command* into *folder*: `README.md`, pictures and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures.draw(results, folder)
    write_csv(results, folder)
    (folder / "README.md").write_text("\n".join(_sections(results, command)), "utf-8")


def _sections(results: Results, command: str) -> Iterator[str]:
    yield "# Load report\n"
    yield "This page shows how Muniment answers a mixed load on one machine. It was written by:\n"
    yield f"```sh\n{command}\n```\n"
    yield markdown(("", ""), [[name, value] for name, value in results.machine.items()]).replace("---:", "---")
    yield _latencies(results)
    yield _costs(results)
    yield _workers(results)
    yield _semantic(results)
    yield from comparisons.sections(results)
    yield _method(results)
    yield _stages(results)


def _latencies(results: Results) -> str:
    tables = "\n".join(f"### {operation}\n\n{_by_cell(results, operation)}" for operation in OPERATIONS)
    return f"""## Latency

![Latency by number of stored memories]({pictures.BY_SIZE})

![Latency by number of clients]({pictures.BY_CLIENTS})

Milliseconds, {_FOUR}. p95 needs 20 calls, p99 100 and p99.9 1,000. With fewer, there is a dash
in all tables, an empty field in CSV, and no point in the pictures. Latencies are counted from when a call was due, so
they include the time that it waited for its client's previous call.

{tables}"""


def _by_cell(results: Results, operation: str) -> str:
    cells = {(cell.items, cell.clients): cell for cell in results.cells}
    return markdown(
        ["memories", *(_count(clients, "client") for clients in results.plan.clients)],
        [
            [f"{items:,}", *(_shown(cells[items, clients], operation) for clients in results.plan.clients)]
            for items in results.sizes
        ],
    )


def _shown(cell: Cell, operation: str) -> str:
    figures = cell.figures(operation)
    return percentiles(figures) if figures.calls else "–"


def _costs(results: Results) -> str:
    return f"""## Load, cost and baselines

*Capacity* is what the clients reached in a closed loop just before, in calls a second; *offered* is {_share(results)}
of it. *Late* is the 99th percentile of the load generators' own delay, in milliseconds. CPU is in microseconds a call,
memory in MiB. The last three columns are baselines, p50 / p99 in milliseconds: a gRPC ping at the same rate, and by
pgbench the SELECT of one memory and the statement of SaveMemory, each at the rate of that operation.

{_cost_table(results.cells)}"""


def _cost_table(cells: Sequence[Cell]) -> str:
    headings = (
        "memories", "clients", "workers", "capacity", "offered", "answered", "refused", "late",
        "CPU: server", "embedder", "Postgres", "memory: server", "embedder", "Postgres", PING, SELECT, SAVE_ITEM,
    )  # fmt: skip
    return markdown(headings, map(_cost_row, cells))


def _cost_row(cell: Cell) -> list[str]:
    bad = refused(cell.run.calls)
    return [
        f"{cell.items:,}", str(cell.clients), str(cell.workers),
        *(f"{rate:,.0f}" for rate in (cell.capacity, cell.rate, cell.run.per_second)),
        ", ".join(f"{count} {status}" for status, count in bad.items()) or "0",
        milliseconds(cell.late.p99),
        *(f"{cpu:,.0f}" for cpu in cell.cpu), *(f"{memory:,.0f}" for memory in cell.memory),
        *(_two(cell.baselines[name]) for name in (PING, SELECT, SAVE_ITEM)),
    ]  # fmt: skip


def _two(figures: Figures) -> str:
    return f"{milliseconds(figures.p50)} / {milliseconds(figures.p99)}"


def _workers(results: Results) -> str:
    rows = [
        [_count(cell.workers, "worker"), *(_shown(cell, operation) for operation in (GET, SAVE, SEARCH))]
        for cell in results.by_workers
    ]
    return f"""## Number of workers

The same load on servers with different numbers of worker processes. The second table shows {_FOUR} in
milliseconds.

{_cost_table(results.by_workers)}
{markdown(("", GET, SAVE, SEARCH), rows)}"""


def _semantic(results: Results) -> str:
    rows = [
        [f"{cell.items:,}", *(_shown(cell, operation) for operation in (GET, SAVE, SEARCH)), f"{cell.queued:,}"]
        for cell in results.semantic
    ]
    fresh = [
        [
            f"{one.items:,}", f"{one.drawn:,}",
            _fresh(one.idle.by_words), _fresh(one.idle.by_embedding, one.idle.not_found),
            _fresh(one.loaded.by_words), _fresh(one.loaded.by_embedding, one.loaded.not_found),
        ]
        for one in results.fresh
    ]  # fmt: skip
    return f"""## With embeddings

The same load on a server with an embedder, which takes part of the two cores: one embedding takes it tens of
milliseconds, so queries by embedding cost more than queries by words, and saves leave it work. The second table shows
{_FOUR} in milliseconds, and how many memories still waited for their embedding when the load ended.

{_cost_table(results.semantic)}
{markdown(("memories", GET, SAVE, SEARCH, "waiting"), rows)}
### From save to found

Milliseconds from the beginning of a save until a search finds the memory, p50 / p95 / slowest, on an idle server and
during the load. By words: a search for a word that no other memory has. By embedding: an English sentence, searched for
in Chinese. A search is repeated every 10 ms for at most 20 s.

The model embedded the first {results.plan.real_vectors:,} memories that were loaded. The vectors of the others were
drawn, as were those of the memories that a load replaced: each is near that of a real text (a cosine of about {NEAR}),
moved towards another one.

{markdown(_FRESH, fresh)}"""


def _fresh(figures: Figures, not_found: int = 0) -> str:
    if not figures.calls and not not_found:
        return "–"
    missed = f", {not_found} not found" if not_found else ""
    return " / ".join(map(milliseconds, (figures.p50, figures.p95, figures.slowest))) + missed


def _method(results: Results) -> str:
    mix = ", ".join(f"{operation} {part:g}" for operation, part in MIX.items())
    return f"""## How it is measured

* **Open loop.** The calls of each client arrive at random (a Poisson process), whether or not earlier ones were
  answered. A client has one call under way; what is due meanwhile waits, and the wait counts. No call is retried:
  refusals are counted.
* **Clients** are sessions with tokens of their own, of {AGENTS} agents and all four levels, in two processes with four
  connections each. A single client is at INTERNAL. Everything runs on one machine: the load generators share its cores.
* **The mix**, in parts:
  {mix}.
  A RaiseTaint follows each OpenSession. A save replaces a stored memory, so that the store keeps its size.
* **The store** is that of one server, and grows from size to size. Its texts are excerpts of real ones, dealt out
  evenly among {AGENTS} agents: 60 % PUBLIC, 25 % INTERNAL, 10 % CONFIDENTIAL, 5 % RESTRICTED. They are loaded by COPY,
  and indexed by the service's own statement. Postgres is the embedded one, with fsync.
* **Each cell** first fills caches with a closed loop of {results.plan.times.probe:g} s. Then the load runs for
  {results.plan.times.load:g} s, and each baseline for {results.plan.times.baseline:g} s.

The raw data: `calls.csv.gz` has each call, `cells.csv` the percentiles by operation, `costs.csv` rates, CPU and memory,
`baselines.csv` what was measured beside the cells, `side_by_side.csv` the other systems.
"""


def _stages(results: Results) -> str:
    rows = [[stage.name, f"{stage.seconds:.0f}"] for stage in results.stages]
    rows.append(["together", f"{sum(stage.seconds for stage in results.stages):.0f}"])
    return f"## How long it took\n\n{markdown(('', 'seconds'), rows)}"


def _share(results: Results) -> str:
    return f"{100 * results.plan.share:g} %"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
