"""`make bench`: reads and writes through all walls, beside what they are compared with, in one run.

GetMemory is compared with a bare ping (a gRPC server with no interceptor), SaveMemory with the same statement run
by pgbench over as many connections as the service uses. Loads run in turn, several rounds; medians are printed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import muniment
from muniment import Classification
from muniment.v1 import memory_service_pb2
from tests.bench import measure, pgbench
from tests.bench.measure import Result
from tests.bench.processes import Service, pinging, serving

_CONSOLE = Console()
_KEY = "plan"


@dataclass(frozen=True, slots=True)
class Settings:
    """How much load, for how long."""

    workers: int
    threads: int
    in_flight: int
    seconds: float
    rounds: int


@click.command(epilog="Example: make bench ARGS='--seconds 5 --rounds 3'")
@click.option("--workers", default=1, show_default=True, help="Worker processes of the service, and pings.")
@click.option("--threads", default=4, show_default=True, help="Threads of each.")
@click.option("--in-flight", default=64, show_default=True, help="Calls in flight.")
@click.option("--seconds", default=5.0, show_default=True, help="Seconds of each load in each round.")
@click.option("--rounds", default=3, show_default=True, help="How often each load runs.")
def main(workers: int, threads: int, in_flight: int, seconds: float, rounds: int) -> None:
    """Measure the service on this machine. Takes about two minutes. The database is durable (fsync on)."""
    settings = Settings(workers, threads, in_flight, seconds, rounds)
    folder = Path(tempfile.mkdtemp(prefix="muniment-bench-"))
    folder.chmod(0o711)
    try:
        with ExitStack() as stack:
            _run(settings, folder, stack)
    except measure.ToolMissing as missing:
        raise click.ClickException(str(missing)) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(settings: Settings, folder: Path, stack: ExitStack) -> None:
    first = stack.enter_context(serving(folder, workers=settings.workers, threads=settings.threads))
    ping_address, ping_pids = stack.enter_context(pinging(workers=settings.workers, threads=settings.threads))
    loads = _loads(settings, first, ping_address, ping_pids)
    with _CONSOLE.status("…") as status:
        results = measure.interleaved(
            loads, rounds=settings.rounds, told=lambda name: status.update(f"measuring {name}")
        )
    _report(results)
    for pid in first.workers:
        _CONSOLE.print(f"worker {pid}: {measure.memory_mib(pid):.0f} MiB resident (to reach: under 120)")
    first.stop()
    again = stack.enter_context(serving(folder, workers=settings.workers, threads=settings.threads))
    _CONSOLE.print(f"start on a new data directory: {first.seconds_to_ready:.2f} s")
    _CONSOLE.print(f"re-open: {again.seconds_to_ready:.2f} s (to reach: under 2)")


def _loads(settings: Settings, service: Service, ping: str, ping_pids: list[int]) -> dict[str, Callable[[], Result]]:
    host = muniment.connect(service.address, host_key=service.host_key)
    host.create_agent("bench")
    sessions = {
        level: host.open_session("bench", level) for level in (Classification.INTERNAL, Classification.CONFIDENTIAL)
    }
    for session in sessions.values():
        session.save_memory(_KEY, "x" * 400, tags=["bench"])
    request = memory_service_pb2.GetMemoryRequest(key=_KEY).SerializeToString()
    h2load = partial(measure.h2load, body=request, in_flight=settings.in_flight, seconds=settings.seconds)

    def get(level: Classification) -> Result:
        url = f"http://{service.address}/muniment.v1.MemoryService/GetMemory"
        return h2load(url, pids=service.workers, token=sessions[level].token)

    saver = sessions[Classification.INTERNAL]
    connections = settings.workers * settings.threads

    def same_statement(clients: int) -> Result:
        return pgbench.saves(
            service.conninfo("muniment_internal"),
            tenant=int(saver.token.split("_")[2]),
            session_id=saver.session_id,
            clients=clients,
            seconds=settings.seconds,
        )

    return {
        "bare ping": lambda: h2load(f"http://{ping}/bench/Ping", pids=ping_pids),
        "GetMemory at INTERNAL": lambda: get(Classification.INTERNAL),
        "GetMemory at CONFIDENTIAL, audited": lambda: get(Classification.CONFIDENTIAL),
        f"save statement, pgbench -c {connections}": lambda: same_statement(connections),
        "SaveMemory at INTERNAL": lambda: measure.savers(
            service.address, saver.token, pids=service.workers, in_flight=settings.in_flight, seconds=settings.seconds
        ),
    }


def _report(results: dict[str, Result]) -> None:
    table = Table(title="medians")
    for heading in ("", "per s", "CPU per call", "p50", "p99", "of its baseline"):
        table.add_column(heading, justify="left" if not heading else "right")
    ping, *gets, statement, save = results
    baselines = {**dict.fromkeys(gets, ping), save: statement}
    for name, result in results.items():
        baseline = baselines.get(name)
        ratio = f"{result.per_second / results[baseline].per_second:.0%}" if baseline else "baseline"
        cpu = f"{result.cpu_microseconds:.0f} us" if result.cpu_seconds else ""
        table.add_row(
            name, f"{result.per_second:,.0f}", cpu, f"{result.p50 * 1000:.1f} ms", f"{result.p99 * 1000:.1f} ms", ratio
        )
    _CONSOLE.print(table)
    _CONSOLE.print("to reach: GetMemory at INTERNAL 40 % of bare ping, SaveMemory 35 % of its statement by pgbench")


if __name__ == "__main__":
    main()
