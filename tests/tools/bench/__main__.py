"""`make bench`: reads and writes through the whole service, beside what they are compared with, in one run.

The baselines are a ping (a gRPC server that does nothing), a bare server (gRPC, one pooled SELECT, nothing else) and
the statement of SaveMemory run by pgbench over as many connections as the service uses. Loads run in turn, several
rounds. Ratios are taken within a round.

Another checkout is measured in the same run, to compare before and after:
make bench ARGS='--server "before=/work/base/.venv/bin/muniment" --server "after=.venv/bin/muniment"'
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
import psycopg
from rich.console import Console

import muniment
from muniment import Classification, SessionClient
from muniment.v1 import memory_service_pb2
from tests.tools.bench import measure, pgbench, report
from tests.tools.bench.measure import Result
from tests.tools.bench.processes import OURS, Service, running, serving
from tests.tools.bench.report import Ratio

_CONSOLE = Console(width=130)
_KEY = "plan"
_SAVE = "SaveMemory"
_GET = "/muniment.v1.MemoryService/GetMemory"
_PING, _BARE, _STATEMENT = "ping", "bare: gRPC and one SELECT", "save statement by pgbench"
_LEVELS = (Classification.INTERNAL, Classification.CONFIDENTIAL)
_AGENT = "SELECT agent FROM session WHERE tenant = %s AND session_id = %s"
_WARM_UP = 1.0
"""Seconds of each load that are not counted: plans are made, caches fill."""
_CPU: Callable[[Result], float] = attrgetter("cpu_microseconds")
_RATE: Callable[[Result], float] = attrgetter("per_second")

Load = Callable[[float], Result]
"""Runs for so many seconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much load, for how long."""

    workers: int
    threads: int
    in_flight: int
    seconds: float
    rounds: int
    reads_only: bool


@click.command(epilog="Example: make bench ARGS='--seconds 5 --rounds 10'")
@click.option("--workers", default=1, show_default=True, help="Worker processes of each server.")
@click.option("--threads", default=4, show_default=True, help="Threads of each.")
@click.option("--in-flight", default=64, show_default=True, help="Calls in flight.")
@click.option("--seconds", default=3.0, show_default=True, help="Seconds of each load in each round.")
@click.option("--rounds", default=7, show_default=True, help="How often each load runs.")
@click.option("--reads-only", is_flag=True, help="Leave the saves out.")
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME=COMMAND",
    help="A `muniment` command whose `serve` is measured, such as another checkout's. Repeat it to compare: "
    "SaveMemory is compared with that of the first. The default is this checkout's.",
)
def main(
    workers: int, threads: int, in_flight: int, seconds: float, rounds: int, reads_only: bool, servers: Sequence[str]
) -> None:
    """Measure the service on this machine. Takes about four minutes. The database is durable (fsync on)."""
    settings = Settings(workers, threads, in_flight, seconds, rounds, reads_only)
    try:
        with ExitStack() as stack:
            _run(settings, _commands(servers), stack)
    except measure.ToolMissing as missing:
        raise click.ClickException(str(missing)) from None


def _commands(servers: Sequence[str]) -> dict[str, Sequence[str]]:
    """The command of each server by its name."""
    commands: dict[str, Sequence[str]] = {}
    for server in servers:
        name, separator, command = server.partition("=")
        if not separator:
            raise click.BadParameter(f"{server!r} is not NAME=COMMAND", param_hint="--server")
        commands[name] = shlex.split(command)
    return commands or {"": OURS}


def _run(settings: Settings, commands: dict[str, Sequence[str]], stack: ExitStack) -> None:
    processes: Any = {"workers": settings.workers, "threads": settings.threads}
    services = {name: _serve(settings, command, stack) for name, command in commands.items()}
    sessions = {name: _sessions(service) for name, service in services.items()}
    first, saver = next(iter(services.values())), next(iter(sessions.values()))[Classification.INTERNAL]
    loads = _baselines(settings, first, saver, stack)
    for name, service in services.items():
        loads |= _loads(settings, name, service, sessions[name])
    if settings.reads_only:
        loads = {name: load for name, load in loads.items() if name != _STATEMENT and not name.endswith(_SAVE)}
    with _CONSOLE.status("…") as status:
        measure.interleaved(_for(_WARM_UP, loads), rounds=1, on_load=lambda load: status.update(f"warming up {load}"))
        rounds = measure.interleaved(
            _for(settings.seconds, loads),
            rounds=settings.rounds,
            on_load=lambda load: status.update(f"measuring {load}"),
        )
    wanted = [ratio for ratio in _ratios([*services]) if {ratio.load, ratio.baseline} <= rounds.keys()]
    report.show(_CONSOLE, rounds, wanted)
    for name, service in services.items():
        for pid in service.workers:
            _CONSOLE.print(f"{_of(name, 'worker')}: {measure.memory_mib(pid):.0f} MiB resident (goal: under 120)")
        service.stop()
        again = stack.enter_context(serving(service.folder, command=commands[name], words_alone=True, **processes))
        again.stop()
        _CONSOLE.print(
            f"{_of(name, 'start')}: {service.seconds_to_ready:.2f} s on a new data directory, "
            f"{again.seconds_to_ready:.2f} s again (goal: under 2)"
        )


def _serve(settings: Settings, command: Sequence[str], stack: ExitStack) -> Service:
    """A server on a data directory of its own, without an embedder: that would embed what the last load saved."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-bench-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o711)
    return stack.enter_context(
        serving(folder, workers=settings.workers, threads=settings.threads, words_alone=True, command=command)
    )


def _sessions(service: Service) -> dict[Classification, SessionClient]:
    """A session at each level, and the memory that will be read."""
    host = muniment.connect(service.address, host_key=service.host_key)
    host.create_agent("bench")
    sessions = {level: host.open_session("bench", level) for level in _LEVELS}
    for session in sessions.values():
        session.save_memory(_KEY, "x" * 400, tags=["bench"])
    return sessions


def _baselines(settings: Settings, service: Service, saver: SessionClient, stack: ExitStack) -> dict[str, Load]:
    """What needs no service; the bare server and pgbench use the database of *service*."""
    conninfo, tenant = service.conninfo("muniment_internal"), int(saver.token.split("_")[2])
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(_AGENT, (tenant, saver.session_id)).fetchone()
    assert row is not None
    start = partial(running, workers=settings.workers, threads=settings.threads)
    ping, ping_pids = stack.enter_context(start("ping"))
    bare, bare_pids = stack.enter_context(start("bare", conninfo, str(tenant), str(row[0])))

    def save(seconds: float) -> Result:
        clients = settings.workers * settings.threads
        return pgbench.saves(conninfo, tenant=tenant, session_id=saver.session_id, clients=clients, seconds=seconds)

    return {
        _PING: _h2load(settings, ping, pids=ping_pids),
        _BARE: _h2load(settings, bare, pids=bare_pids),
        _STATEMENT: save,
    }


def _loads(
    settings: Settings, name: str, service: Service, sessions: dict[Classification, SessionClient]
) -> dict[str, Load]:
    def save(seconds: float) -> Result:
        token = sessions[Classification.INTERNAL].token
        return measure.savers(
            service.address, token, pids=service.workers, in_flight=settings.in_flight, seconds=seconds
        )

    gets = {
        _get(name, level): _h2load(settings, service.address, pids=service.workers, token=sessions[level].token)
        for level in _LEVELS
    }
    return {**gets, _save(name): save}


def _h2load(settings: Settings, address: str, *, pids: Sequence[int], token: str = "") -> Load:
    """The same request to every server."""
    body = memory_service_pb2.GetMemoryRequest(key=_KEY).SerializeToString()
    return lambda seconds: measure.h2load(
        f"http://{address}{_GET}", body, pids=pids, in_flight=settings.in_flight, seconds=seconds, token=token
    )


def _for(seconds: float, loads: dict[str, Load]) -> dict[str, Callable[[], Result]]:
    return {name: partial(load, seconds) for name, load in loads.items()}


def _ratios(names: Sequence[str]) -> list[Ratio]:
    """What is compared with what: every server with the baselines, and then with the first."""
    found = [Ratio("bare / ping, calls per s", _BARE, _PING, _RATE)]
    for name in names:
        get, audited, save = (*(_get(name, level) for level in _LEVELS), _save(name))
        found += [
            Ratio(f"{get} / bare, CPU", get, _BARE, _CPU, "at most 1.30"),
            Ratio(f"{get} / bare, calls per s", get, _BARE, _RATE),
            Ratio(f"{get} / ping, calls per s", get, _PING, _RATE, "at least 0.38"),
            Ratio(f"{get} / ping, CPU", get, _PING, _CPU),
            Ratio(f"{audited} / ping, calls per s", audited, _PING, _RATE),
            Ratio(f"{save} / statement by pgbench, calls per s", save, _STATEMENT, _RATE, "at least 0.35"),
        ]
    for name in names[1:]:
        found += [_same(name, names[0], _get(name, level), _get(names[0], level)) for level in _LEVELS]
        found += [Ratio(f"{_save(name)} / {names[0]}, CPU", _save(name), _save(names[0]), _CPU, "at most 1")]
        found += [Ratio(f"{_save(name)} / {names[0]}, calls per s", _save(name), _save(names[0]), _RATE, "at least 1")]
    return found


def _same(name: str, first: str, load: str, baseline: str) -> Ratio:
    return Ratio(f"{load} / {first}, CPU", load, baseline, _CPU)


def _get(name: str, level: Classification) -> str:
    return _of(name, f"GetMemory at {level.name}" + (", audited" if level is Classification.CONFIDENTIAL else ""))


def _save(name: str) -> str:
    return _of(name, _SAVE)


def _of(name: str, what: str) -> str:
    return f"{name}: {what}" if name else what


if __name__ == "__main__":
    main()
