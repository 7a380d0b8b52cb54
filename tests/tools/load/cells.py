"""One cell of the load: a number of clients on a store of one size; and its baselines, a ping and bare statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from muniment_server.domain.classification import Classification
from tests.support.labels import untrusted
from tests.tools.bench import pgbench
from tests.tools.bench.processes import Service, running, serving
from tests.tools.bench.usage import Usage, cpu_seconds, memory_mib
from tests.tools.load.calls import GET, MIX, NOT_SENT, SAVE
from tests.tools.load.driver import Run, Target, Texts, drive
from tests.tools.load.figures import Figures, of_calls
from tests.tools.load.world import World

THREADS = 4
PING, SELECT, SAVE_ITEM = "ping", "SELECT by key", "save_item"
"""The baselines: a gRPC server that does nothing, the SELECT of the bare server, and the statement of SaveMemory."""
_PGBENCH_CLIENTS = 8
_PGBENCH_NAMES = 16
"""Few, so that the store keeps its size."""


class Times(NamedTuple):
    """How long each part of a cell runs, in seconds."""

    load: float
    probe: float
    """Of the closed loop before the load. It also fills caches."""
    baseline: float
    """Of each baseline."""


class Served(NamedTuple):
    """A running service, and a ping with as many processes."""

    service: Service
    ping: str
    workers: int
    semantic: bool
    """Whether the service has an embedder."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured with one number of clients on a store of one size."""

    items: int
    clients: int
    workers: int
    semantic: bool
    capacity: float
    """Calls a second if each client sends its next call at once."""
    rate: float
    """Calls a second that were offered."""
    run: Run
    memory: Usage
    """In MiB."""
    queued: int
    """Memories that waited for an embedding at the end of the load."""
    baselines: Mapping[str, Figures]
    """Each baseline, at the rate of the operation that it is compared with."""

    def figures(self, operation: str) -> Figures:
        """The figures of one operation of the load."""
        return of_calls(call for call in self.run.calls if call.operation == operation)

    @property
    def cpu(self) -> Usage:
        """CPU microseconds a call."""
        return self.run.used.per(max(1, len(self.run.answered)) / 1e6)

    @property
    def late(self) -> Figures:
        """How late the load generators sent, although the caller was free."""
        return Figures.of(call.late for call in self.run.calls if call.status != NOT_SENT)


@contextmanager
def served(folder: Path, workers: int, *, semantic: bool) -> Iterator[Served]:
    """The service on a data directory that may have been used before, and a ping."""
    with (
        serving(folder, workers=workers, threads=THREADS, words_alone=not semantic) as service,
        running("ping", workers=workers, threads=THREADS) as (ping, _),
    ):
        yield Served(service, ping, workers, semantic)


def measured(
    on: Served, world: World, texts: Texts, clients: int, times: Times, *, share: float, settle: Callable[[], int]
) -> Cell:
    """Find out the capacity, then offer *share* of it.

    *settle* embeds what is queued for the embedder, and returns how many that were.
    """
    target = target_of(on.service, world, clients)
    capacity = drive(target, texts, seconds=times.probe, seed=2).per_second
    rate = max(1.0, share * capacity)
    settle()
    run = drive(target, texts, seconds=times.load, rate=rate)
    queued = settle()
    memory = memory_mib(on.service)
    baselines = _baselines(on, world, texts, target, rate, times.baseline)
    return Cell(world.items, clients, on.workers, on.semantic, capacity, rate, run, memory, queued, baselines)


def target_of(service: Service, world: World, clients: int) -> Target:
    """The service, loaded by *clients* of the world's sessions."""
    return Target(service.address, world.callers(service, clients), service.host_key, lambda: cpu_seconds(service))


def _baselines(
    on: Served, world: World, texts: Texts, target: Target, rate: float, seconds: float
) -> Mapping[str, Figures]:
    owner, keys = world.agent(on.service, Classification.INTERNAL)
    conninfo = on.service.conninfo(untrusted(owner.level).role)
    clients = min(_PGBENCH_CLIENTS, len(target.callers))

    def statement(script: str, operation: str) -> Figures:
        part = max(1.0, rate * MIX[operation] / 100)
        latencies, _ = pgbench.timed(script, conninfo, clients=clients, seconds=seconds, rate=part)
        return Figures.of(latencies)

    ping = Target(on.ping, target.callers)
    return {
        PING: of_calls(drive(ping, texts, seconds=seconds, rate=rate, mix={GET: 1}).calls),
        SELECT: statement(pgbench.select_script(tenant=owner.tenant, agent=owner.agent, names=keys), GET),
        SAVE_ITEM: statement(
            pgbench.save_script(tenant=owner.tenant, session_id=str(owner.session_id), names=_PGBENCH_NAMES), SAVE
        ),
    }
