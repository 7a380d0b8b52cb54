"""A worker that takes too much memory, through an attack or a leak, is replaced, and no call fails."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

import muniment
from muniment import Classification
from tests.proof.faults.processes import ServerProcess, is_running, running, wait_until
from tests.support.raw_http2 import Unacknowledging

pytestmark = pytest.mark.proof

_LIMIT = 100
"""MiB. A worker that serves has 80."""
_LEAKS = """
import signal, sys, time

if any("muniment_server.runtime.worker" in argument for argument in sys.orig_argv):
    leaked = []
    signal.signal(signal.SIGUSR2, lambda *_: leaked.append(b"x" * 50_000_000))
    # It does not end while it sleeps, even if it was to be replaced when it had leaked half of this.
    signal.signal(signal.SIGWINCH, lambda *_: (leaked.append(b"x" * 500_000_000), time.sleep(5)))
"""
_CONNECTIONS, _STREAMS = 4, 50
_READERS = 4
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server whose workers leak at signals."""
    (tmp_path / "sitecustomize.py").write_text(_LEAKS)
    options = ("--max-worker-memory", str(_LIMIT))
    with running(ServerProcess(*options, code=tmp_path, words_alone=True)) as server:
        yield server


@contextmanager
def reading(server: ServerProcess) -> Iterator[list[str]]:
    """Read all the time with the Python client, on several connections; yield the failures."""
    failures: list[str] = []
    over = threading.Event()
    all_read = threading.Barrier(_READERS + 1, timeout=60)

    def read(agent: str) -> None:
        with muniment.connect(server.address, host_key=server.host_key, timeout=60) as host:
            host.create_agent(agent)
            with host.open_session(agent, Classification.INTERNAL) as session:
                session.save_memory("plan", "whale")
                all_read.wait()
                while not over.is_set():
                    try:
                        session.get_memory("plan")
                    except muniment.MunimentError as error:
                        failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=read, args=[f"agent{number}"]) for number in range(_READERS)]
    for thread in threads:
        thread.start()
    all_read.wait()  # a call that creates an agent may not be repeated
    yield failures
    over.set()
    for thread in threads:
        thread.join()


def swell(server: ServerProcess, stack: ExitStack) -> None:
    """Headers that would become 1.6 GB, of half a megabyte that is sent. Their connections stay until *stack* ends."""
    for _ in range(_CONNECTIONS):
        connection = stack.enter_context(closing(Unacknowledging(server.address)))
        for _ in range(_STREAMS):
            connection.send_headers(_HEALTH_CHECK, megabytes=8)


def leak(server: ServerProcess, _: ExitStack) -> None:
    """50 MB in one worker."""
    os.kill(server.workers()[0], signal.SIGUSR2)


@pytest.mark.parametrize("grow", [swell, leak])
def test_a_worker_that_grows_is_replaced_and_no_call_fails(
    grow: Callable[[ServerProcess, ExitStack], None], server: ServerProcess
):
    before = server.workers()
    with reading(server) as failures, ExitStack() as stack:
        grow(server, stack)
        wait_until(lambda: "a worker has grown to" in server.log, "it is noticed")
        wait_until(lambda: not all(is_running(pid) for pid in before), "it has ended", seconds=120)
        wait_until(lambda: server.listening() == len(before), "another one serves", seconds=120)

    assert failures == []
    assert "killing it" not in server.log
    assert len(server.workers()) == len(before)


def test_a_worker_that_grows_faster_than_it_can_be_replaced_is_killed(server: ServerProcess):
    before = server.workers()
    os.kill(before[0], signal.SIGWINCH)
    wait_until(lambda: not is_running(before[0]), "it is ended")
    wait_until(lambda: server.listening() == len(before), "another one serves")

    assert "MiB: killing it" in server.log
    assert before[1] in server.workers()
