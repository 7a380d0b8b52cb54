"""One run: the store of one data directory grows from size to size, and is measured at each."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from rich.progress import Progress, TaskID

from tests.tools.bench_search.corpus import Source
from tests.tools.load import freshness, machine, opinions, side_by_side
from tests.tools.load.cells import Cell, Served, measured, served, target_of
from tests.tools.load.driver import Texts, drive
from tests.tools.load.freshness import Freshness
from tests.tools.load.results import Fresh, Plan, Results, Stage
from tests.tools.load.vectors import Vectors
from tests.tools.load.world import World

WORKERS_CLIENTS = 64
WORKERS_ITEMS = 100_000
"""Numbers of workers are compared on the largest store up to this size, with up to WORKERS_CLIENTS clients."""
SEMANTIC_CLIENTS = 16
PEERS_ITEMS = 1000
"""The most that the peers store: mem0 takes a twentieth of a second for each."""
_CONTENTS, _QUERIES = 2000, 500


class Runner:
    """Measures what *plan* says, and shows its progress."""

    def __init__(self, plan: Plan, data: Path, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._data = data
        self._source = Source(data)
        self._texts = Texts([*self._source.items(_CONTENTS)], self._source.queries(_QUERIES))
        self._vectors = Vectors(plan.real_vectors)
        self._results = Results(plan, machine.described())

    def run(self) -> Iterator[Results]:
        """Measure it all. Yields what there is after each size, so that a failure at the next one loses only that."""
        folder = Path(tempfile.mkdtemp(prefix="muniment-load-"))
        folder.chmod(0o711)
        try:
            world: World | None = None
            for items in self._plan.sizes:
                world = self._words(folder, world, items)
                self._semantic(folder, world)
                yield self._results
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _words(self, folder: Path, world: World | None, items: int) -> World:
        """Grow the store, and measure it without an embedder."""
        first, *others = self._plan.workers
        with served(folder, first, semantic=False) as on:
            world = world or World(on.service, self._source)
            self._results.machine["Postgres"] = machine.postgres_version(on.service)
            self._grow(on, world, items)
            self._results.cells.extend(self._cell(on, world, clients) for clients in self._plan.clients)
            if items == self._plan.sizes[0]:
                self._compare(on, world)
        if items == self._workers_items:
            self._results.by_workers.extend(
                cell for cell in self._results.cells if (cell.items, cell.clients) == (items, self._workers_clients)
            )
            for workers in others:
                with served(folder, workers, semantic=False) as on:
                    self._results.by_workers.append(self._cell(on, world, self._workers_clients))
        return world

    def _grow(self, on: Served, world: World, items: int) -> None:
        more = 2 * (items - world.items)  # each is loaded, then embedded
        with self._stage(f"load {items:,} memories, and embed them", total=more) as task:
            world.grow(on.service, items, self._vectors, lambda count: self._progress.advance(task, count))

    def _cell(self, on: Served, world: World, clients: int) -> Cell:
        kind = "with embeddings" if on.semantic else "by words"
        with self._stage(f"{world.items:,} memories, clients: {clients}, workers: {on.workers}, {kind}"):
            return measured(
                on, world, self._texts, clients, self._plan.times, share=self._plan.share,
                settle=lambda: self._settle(on, world),
            )  # fmt: skip

    def _settle(self, on: Served, world: World) -> int:
        """Draw a vector for everything that is queued for the embedder; return how many."""
        before = self._vectors.drawn
        world.embed(on.service, self._vectors.draw)
        return self._vectors.drawn - before

    def _compare(self, on: Served, world: World) -> None:
        """Measure other systems beside the smallest store."""
        seconds, lines = self._plan.times.baseline, self._results.lines
        with self._stage("side by side, by words"):
            lines.extend(side_by_side.service_lines(on, world, self._texts, seconds))
        with self._stage("side by side: bare servers"):
            lines.extend(side_by_side.server_lines(on, world, self._texts, seconds))
        with self._stage("side by side: LangGraph's store and mem0"):
            lines.extend(side_by_side.peer_lines(on.service, self._texts, min(world.items, PEERS_ITEMS), seconds))
        with self._stage("h2load and ghz"):
            self._results.opinions.extend(opinions.opinions(on, world, seconds))

    def _semantic(self, folder: Path, world: World) -> None:
        """Measure the store with an embedder that has nothing left to embed at first."""
        with served(folder, self._plan.workers[0], semantic=True) as on:
            self._settle(on, world)
            asked = freshness.pairs(self._data)[: self._plan.fresh]
            with self._stage(f"{world.items:,} memories: from save to found"):
                idle = freshness.measure(on.service, asked)
            if world.items == self._plan.sizes[0]:
                with self._stage("side by side, with embeddings"):
                    seconds = self._plan.times.baseline
                    self._results.lines.extend(side_by_side.service_lines(on, world, self._texts, seconds))
                self._settle(on, world)
            cell = self._cell(on, world, min(SEMANTIC_CLIENTS, max(self._plan.clients)))
            self._results.semantic.append(cell)
            with self._stage(f"{world.items:,} memories: from save to found, during the load"):
                self._settle(on, world)
                loaded = self._fresh_during(on, world, cell, asked)
            self._results.fresh.append(Fresh(world.items, self._vectors.drawn, idle, loaded))

    def _fresh_during(self, on: Served, world: World, cell: Cell, asked: Sequence[tuple[str, str]]) -> Freshness:
        """From save to found, while the load of *cell* runs."""
        target = target_of(on.service, world, cell.clients)
        with ThreadPoolExecutor(1) as pool:
            load = pool.submit(drive, target, self._texts, seconds=cell.run.seconds, rate=cell.rate)
            return freshness.measure(on.service, itertools.takewhile(lambda _: not load.done(), asked))

    @property
    def _workers_clients(self) -> int:
        return max((one for one in self._plan.clients if one <= WORKERS_CLIENTS), default=self._plan.clients[0])

    @property
    def _workers_items(self) -> int:
        return max((one for one in self._plan.sizes if one <= WORKERS_ITEMS), default=self._plan.sizes[0])

    @contextmanager
    def _stage(self, name: str, total: float | None = None) -> Iterator[TaskID]:
        """Show what is being measured, and record how long it took."""
        task = self._progress.add_task(name, total=total)
        begun = time.monotonic()
        yield task
        self._results.stages.append(Stage(name, time.monotonic() - begun))
        self._progress.update(task, total=1, completed=1)
