"""The report of a run: a page, its pictures, and the raw data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.tools.load import comparisons, pictures
from tests.tools.load.calls import GET, MIX, OPERATIONS, SAVE, SEARCH
from tests.tools.load.cells import Cell
from tests.tools.load.figures import Figures, refused
from tests.tools.load.results import Results
from tests.tools.load.tables import markdown, milliseconds, percentiles, write_csv
from tests.tools.load.vectors import NEAR
from tests.tools.load.world import AGENTS

_THREE = (GET, SAVE, SEARCH)
_FRESH = ("memories", "drawn vectors", "idle: by words", "by embedding", "loaded: by words", "by embedding")


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
    yield _semantic(results)
    yield from comparisons.sections(results)
    yield _method(results)


def _latencies(results: Results) -> str:
    clients = pictures.fixed_clients(results)
    by_size = [cell for cell in results.cells if cell.clients == clients]
    rows = [[operation, *(_shown(cell, operation) for cell in by_size)] for operation in OPERATIONS]
    return f"""## Latency

Milliseconds, p50/p95/p99. p95 needs 20 calls, and p99 100: with fewer, there is a dash. Latencies are counted from
when a call was due, so they include the time that it waited for its client's previous call. `cells.csv` has all cells,
also with one worker and four.

![Latency by number of stored memories]({pictures.BY_SIZE})

![Latency by number of clients]({pictures.BY_CLIENTS})

By number of memories, {_count(clients, "client")}:

{markdown(["", *(f"{cell.items:,}" for cell in by_size)], rows)}"""


def _shown(cell: Cell, operation: str) -> str:
    figures = cell.figures(operation)
    return percentiles(figures) if figures.calls else "–"


def _costs(results: Results) -> str:
    shown = [cell for cell in results.cells if cell.clients in (results.plan.clients[0], results.plan.clients[-1])]
    return f"""## Load and cost

*Capacity* is what the clients reached in a closed loop just before, in calls a second; {_share(results)} of it was
offered. CPU is in microseconds a call, memory in MiB. `costs.csv` has the other numbers of clients, `baselines.csv`
what a gRPC ping and bare statements took.

{markdown(("memories", "clients", *_COST), (_sized(cell, str(cell.clients)) for cell in shown))}"""


_COST = ("capacity", "answered", "refused", "CPU: server", "Postgres", "memory: server", "Postgres")


def _sized(cell: Cell, *parts: str) -> list[str]:
    return [f"{cell.items:,}", *parts, *_cost(cell)]


def _cost(cell: Cell) -> list[str]:
    bad = refused(cell.run.calls)
    return [
        f"{cell.capacity:,.0f}", f"{cell.run.per_second:,.0f}",
        ", ".join(f"{count} {status}" for status, count in bad.items()) or "0",
        *(f"{used:,.0f}" for used in (cell.cpu.server, cell.cpu.postgres, cell.memory.server, cell.memory.postgres)),
    ]  # fmt: skip


def _semantic(results: Results) -> str:
    rows = [
        [
            f"{cell.items:,}", f"{cell.capacity:,.0f}", *(_shown(cell, operation) for operation in _THREE),
            f"{cell.cpu.embedder:,.0f}", f"{cell.queued:,}",
        ]
        for cell in results.semantic
    ]  # fmt: skip
    fresh = [
        [
            f"{one.items:,}", f"{one.drawn:,}",
            _fresh(one.idle.by_words), _fresh(one.idle.by_embedding, one.idle.not_found),
            _fresh(one.loaded.by_words), _fresh(one.loaded.by_embedding, one.loaded.not_found),
        ]
        for one in results.fresh
    ]  # fmt: skip
    return f"""## With embeddings

The same load of {_count(pictures.fixed_clients(results), "client")} on a server with an embedder, which takes part of
the cores: the CPU that it takes for a call, and how many memories waited for their embedding at the end.

{markdown(("memories", "capacity", *_THREE, "CPU", "waiting"), rows)}
### From save to found

Milliseconds from the beginning of a save until a search finds the memory, p50/p95/slowest, on an idle server and
during the load. By words: a search for a word that no other memory has. By embedding: an English sentence, searched for
in Chinese. A search is repeated every 10 ms for at most 20 s.

The model embedded the first {results.plan.real_vectors:,} memories. The other vectors were drawn, each near that of a
real text (a cosine of about {NEAR}).

{markdown(_FRESH, fresh)}"""


def _fresh(figures: Figures, not_found: int = 0) -> str:
    if not figures.calls and not not_found:
        return "–"
    missed = f", {not_found} not found" if not_found else ""
    return "/".join(map(milliseconds, (figures.p50, figures.p95, figures.slowest))) + missed


def _method(results: Results) -> str:
    mix = ", ".join(f"{operation} {part:g}" for operation, part in MIX.items())
    return f"""## How it is measured

* **Open loop.** The calls of each client arrive at random (a Poisson process), whether or not earlier ones were
  answered. A client has one call under way; what is due meanwhile waits, and the wait counts. No call is retried.
* **Clients** are sessions of {AGENTS} agents at all four levels, in two processes with four connections each, on the
  same machine. A single client is at INTERNAL.
* **The mix**, in parts: {mix}.
  A RaiseTaint follows each OpenSession. A save replaces a stored memory.
* **The store** has excerpts of real texts, dealt out evenly among the agents: 60 % PUBLIC, 25 % INTERNAL, 10 %
  CONFIDENTIAL, 5 % RESTRICTED. They are loaded by COPY, and indexed by the service's own statement. Postgres is the
  embedded one, with fsync.
* **Each cell** first fills caches with a closed loop of {results.plan.times.probe:g} s. Then the load runs for
  {results.plan.times.load:g} s, and each baseline for {results.plan.times.baseline:g} s.

The whole run took {sum(stage.seconds for stage in results.stages) / 60:.0f} minutes. `calls.csv.gz` has each call,
`side_by_side.csv` the other systems, also with a single caller.
"""


def _share(results: Results) -> str:
    return f"{100 * results.plan.share:g} %"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
