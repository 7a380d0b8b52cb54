"""Muniment beside others, in one run on the same texts. Each caller sends its next call at once.

What the guards cost is seen here: a GetMemory beside a ping, and beside a gRPC server with one SELECT.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo as libpq

from muniment_server.domain.classification import Classification
from tests.support.labels import untrusted
from tests.tools.bench.processes import Service, free_port, running
from tests.tools.bench.usage import Usage, cpu_beside, cpu_seconds
from tests.tools.load.calls import GET, SAVE, SEARCH, Caller
from tests.tools.load.cells import THREADS, Served
from tests.tools.load.driver import Target, Texts, drive
from tests.tools.load.figures import Figures, of_calls, refused
from tests.tools.load.peers.closed_loop import Measured, Order
from tests.tools.load.world import World

ROOT = Path(__file__).parents[3]
PEERS = Path(__file__).parent / "peers"
ENVIRONMENT = ROOT / ".venv-peers"
"""What `make load-report` installs the peers and ghz into. Without it, they and grpc-go are left out."""
CALLERS = (1, 16)
GET_AUDITED = "GetMemory, audited"
WORDS, SEMANTIC = "Muniment, by words", "Muniment, with embeddings"
PING, BARE, GO = "ping: gRPC alone", "grpc Python, one SELECT", "grpc-go, one SELECT"
LANGGRAPH, MEM0 = "LangGraph PostgresStore", "mem0, no LLM"
_LANGGRAPH_DATABASE = "langgraph"
_MEM0 = {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "not used"}


@dataclass(frozen=True, slots=True)
class Line:
    """One operation of one system, and how many callers called it."""

    system: str
    operation: str
    callers: int
    per_second: float
    figures: Figures
    cpu: Usage
    """CPU microseconds a call. Of what runs in process, `server` includes the caller."""


def is_installed() -> bool:
    """Whether there is an environment of the peers."""
    return (ENVIRONMENT / "bin" / "python").exists()


def service_lines(on: Served, world: World, texts: Texts, seconds: float) -> Iterator[Line]:
    """GetMemory, SaveMemory and SearchMemories of sessions at INTERNAL; and GetMemory at CONFIDENTIAL, where reads are
    audited."""
    service, name = on.service, SEMANTIC if on.semantic else WORDS
    for callers in CALLERS:
        for operation, level in (
            (GET, Classification.INTERNAL), (GET_AUDITED, Classification.CONFIDENTIAL),
            (SEARCH, Classification.INTERNAL), (SAVE, Classification.INTERNAL),
        ):  # fmt: skip
            sessions = world.one_level(service, callers, level)
            target = Target(service.address, sessions, service.host_key, lambda: cpu_seconds(service))
            yield _driven(name, operation, target, texts, seconds)


def server_lines(on: Served, world: World, texts: Texts, seconds: float) -> Iterator[Line]:
    """A ping, and servers with one SELECT in Python and, if Go is installed, in Go."""
    owner, keys = world.agent(on.service, Classification.INTERNAL)
    of_agent = (on.service.conninfo(untrusted(owner.level).role), str(owner.tenant), str(owner.agent))
    caller = Caller(token="", agent_id="", keys=keys, own_keys=keys, note_id="")
    with (
        running("ping", workers=on.workers, threads=THREADS) as ping,
        running("bare", *of_agent, workers=on.workers, threads=THREADS) as bare,
        _go(of_agent) as go,
    ):
        for name, found in ((PING, ping), (BARE, bare), (GO, go)):
            for callers in CALLERS if found else ():
                assert found is not None
                yield _driven(name, GET, _target(on.service, found, [caller] * callers), texts, seconds)


def peer_lines(service: Service, texts: Texts, items: int, seconds: float) -> Iterator[Line]:
    """LangGraph's store and mem0, if `make` has installed them."""
    if not is_installed():
        return
    for callers in CALLERS:
        with _database(service) as conninfo:
            yield from _asked(LANGGRAPH, "langgraph_store", texts, items, callers, seconds, conninfo)
    yield from _asked(MEM0, "mem0_store", texts, items, 1, seconds)  # its local Qdrant is for one thread


def _driven(system: str, operation: str, target: Target, texts: Texts, seconds: float) -> Line:
    method = GET if operation == GET_AUDITED else operation
    run = drive(target, texts, seconds=seconds, mix={method: 1})
    if not run.answered:
        raise RuntimeError(f"{system} answered no {operation}: {refused(run.calls)}")
    cpu = run.used.per(len(run.answered) / 1e6)
    return Line(system, operation, len(target.callers), run.per_second, of_calls(run.calls), cpu)


def _target(service: Service, found: tuple[str, list[int]], callers: Sequence[Caller]) -> Target:
    address, pids = found
    return Target(address, callers, usage=lambda: cpu_beside(service, pids))


def _asked(
    system: str, program: str, texts: Texts, items: int, callers: int, seconds: float, conninfo: str = ""
) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        order = Order(
            conninfo=conninfo, folder=folder, contents=texts.contents[:items], queries=texts.queries, callers=callers,
            seconds=seconds,
        )  # fmt: skip
        finished = subprocess.run(
            [ENVIRONMENT / "bin" / "python", "-m", f"tests.tools.load.peers.{program}"],
            cwd=ROOT, env={**os.environ, **_MEM0, "MEM0_DIR": folder}, input=json.dumps(order),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    answer: dict[str, Measured] = json.loads(finished.stdout)
    for name, measured in answer.items():
        latencies = measured["latencies"]
        cpu = Usage(measured["cpu"] / len(latencies) * 1e6, 0.0, 0.0)
        rate = len(latencies) / measured["seconds"]
        yield Line(
            system, {"get": GET, "save": SAVE, "search": SEARCH}[name], callers, rate, Figures.of(latencies), cpu
        )


@contextmanager
def _database(service: Service) -> Iterator[str]:
    """A database of its own in the Postgres of *service*."""
    admin = service.conninfo("postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {_LANGGRAPH_DATABASE}".encode())
        try:
            yield libpq.make_conninfo(admin, dbname=_LANGGRAPH_DATABASE)
        finally:
            connection.execute(f"DROP DATABASE {_LANGGRAPH_DATABASE} WITH (FORCE)".encode())


@contextmanager
def _go(of_agent: Sequence[str]) -> Iterator[tuple[str, list[int]] | None]:
    """The server in Go. None without Go."""
    go = shutil.which("go")
    if go is None or not is_installed():
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "grpc_go")
        subprocess.run([go, "build", "-buildvcs=false", "-o", program, "."], cwd=PEERS / "grpc_go", check=True)
        address = f"127.0.0.1:{free_port()}"
        conninfo, *numbers = of_agent
        known: dict[str, Any] = {**libpq.conninfo_to_dict(conninfo)}
        del known["requirepeer"]  # pgx would send it to the server
        process = subprocess.Popen(
            [program, address, str(THREADS), libpq.make_conninfo("", **known), *numbers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield address, [process.pid]
        finally:
            process.communicate("")
