"""A process that hangs: `status` and metrics say so, its stack is logged, and it is replaced within half a minute."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment_server.admin.status import Samples, read, status_of
from tests.proof.faults.processes import ServerProcess, is_running, running, wait_until

pytestmark = pytest.mark.proof

_NOTICED_SECONDS = 30.0
_HANGING = """
import ctypes, signal, sys, threading

def keep_the_interpreter(*_):
    libc, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    for _ in range(2):  # the second time, for ever
        libc.pthread_mutex_lock(mutex)

def keep_a_lock(*_):  # of the health service
    sys.modules["grpc_health.v1.health"].HealthServicer.set = lambda *_: threading.Event().wait()

if any("muniment_server.runtime.worker" in argument for argument in sys.orig_argv):
    signal.signal(signal.SIGUSR2, keep_the_interpreter)
    signal.signal(signal.SIGWINCH, keep_a_lock)
"""
"""What every process of the server loads."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server whose workers hang at a signal."""
    (tmp_path / "sitecustomize.py").write_text(_HANGING)
    with running(ServerProcess(code=tmp_path, words_alone=True)) as server:
        yield server


@pytest.fixture
def semantic() -> Iterator[ServerProcess]:
    """A server whose embedder works."""
    with running(ServerProcess()) as server:
        wait_until(lambda: "muniment_embedding_queue" in metrics(server), "the embedder works")
        yield server


def metrics(server: ServerProcess) -> Samples:
    """The metrics of the server."""
    return read(server.data_dir / "metrics.sock")


@pytest.mark.parametrize(
    ("number", "stands"),
    [(signal.SIGSTOP, "in _dump"), (signal.SIGUSR2, "in keep_the_interpreter"), (signal.SIGWINCH, "in report")],
    ids=["is stopped", "keeps the interpreter", "waits for a lock"],
)
def test_a_worker_that_hangs_is_noticed_and_replaced(number: signal.Signals, stands: str, server: ServerProcess):
    before = server.workers()
    assert status_of(metrics(server))["ready"]
    os.kill(before[0], number)
    wait_until(lambda: not status_of(metrics(server))["ready"], "it is seen to hang")
    ran_when_noticed = is_running(before[0])
    wait_until(lambda: not is_running(before[0]), "it is ended", seconds=_NOTICED_SECONDS)
    wait_until(lambda: len(server.workers()) == len(before), "another one is started")
    wait_until(lambda: status_of(metrics(server))["ready"], "all are ready again")
    after = status_of(metrics(server))

    assert ran_when_noticed
    assert after["replaced_by_reason"] == {"hangs": 1}
    assert before[1] in server.workers()
    assert f"worker hangs: killing it pid={before[0]}" in server.log
    assert re.search(rf"where its threads stood pid={before[0]} stack=(\n.*)*, line \d+ {stands}", server.log)
    host = muniment.connect(server.address, host_key=server.host_key, timeout=20)
    assert [host.create_agent(f"agent-{number}").agent_id for number in range(2)] == ["agent-0", "agent-1"]


def test_an_embedder_that_hangs_is_noticed_and_replaced(semantic: ServerProcess):
    (before,) = semantic.embedders()
    os.kill(before, signal.SIGSTOP)
    wait_until(lambda: not status_of(metrics(semantic))["ready"], "it is seen to hang")
    wait_until(lambda: not is_running(before), "it is ended", seconds=_NOTICED_SECONDS)
    wait_until(lambda: status_of(metrics(semantic))["ready"], "another one is alive")

    assert semantic.embedders() != [before]
    assert f"embedder hangs: killing it pid={before}" in semantic.log
    assert re.search(rf"where its threads stood pid={before} stack=(\n.*)*, line \d+ in main", semantic.log)
    assert status_of(metrics(semantic))["replaced_by_reason"] == {"hangs": 1}
