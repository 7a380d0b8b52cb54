"""A database that stands still: every one of its processes stopped, as on a machine that swaps or a disk that hangs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment.v1.memory_service_pb2 import GetMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment_server.domain.classification import Classification
from tests.proof.faults import promises
from tests.proof.faults.load import TYPED, Load, bearer
from tests.proof.faults.processes import ServerProcess, wait_until

_STILL = 2.0
_IMPATIENT = 0.3
_PATIENT = 20.0


def test_calls_fail_typed_or_succeed_later_and_nothing_is_lost(server: ServerProcess, load: Load) -> None:
    token = load.open_session(Classification.PUBLIC)[1]
    with load.running(), ThreadPoolExecutor(8) as threads:
        wait_until(lambda: len(load.acknowledged) > 20, "writes before")
        with _standing_still(server):
            impatient = [_get(load, token, timeout=_IMPATIENT) for _ in range(3)]
            patient = [threads.submit(_get, load, token, timeout=_PATIENT) for _ in range(8)]
            time.sleep(_STILL)
        again = time.monotonic()
        answers = [call.result() for call in patient]
        recovery = wait_until(lambda: load.recovered_since(again), "recovery")

    assert set(impatient) <= TYPED
    assert set(answers) <= {"NOT_FOUND", *TYPED}  # NOT_FOUND is the answer: no one saved it
    assert load.surprises == []
    with server.as_owner() as owner:
        assert promises.broken(owner, load) == []
    print(
        f"database still for {_STILL:.0f} s: {impatient=}, patient={answers}, {dict(load.codes)}, "
        f"back in {recovery:.2f} s"
    )


def test_health_tells_a_server_that_is_alive_from_one_that_is_ready(server: ServerProcess, load: Load) -> None:
    """An orchestrator restarts the one, and sends calls elsewhere for the other."""
    wait_until(lambda: _health(load) == {"liveness": 1, "readiness": 1, "": 1}, "the server is ready")
    with _standing_still(server):
        wait_until(lambda: _health(load) == {"liveness": 1, "readiness": 2, "": 2}, "it is alive, and not ready")

    wait_until(lambda: _health(load) == {"liveness": 1, "readiness": 1, "": 1}, "it is ready again")


def test_a_database_that_lets_in_no_new_connection_is_not_ready_and_is_restarted(
    server: ServerProcess, load: Load
) -> None:
    """A smart shutdown, as of `systemctl stop` and `kill`, waits for the connections of the pools."""
    wait_until(lambda: _health(load)["readiness"] == 1, "the server is ready")
    before = server.postmaster()
    assert before is not None
    with server.as_owner():
        os.kill(before, signal.SIGTERM)
        wait_until(lambda: _health(load)["readiness"] == 2, "it is not ready")
        wait_until(lambda: _health(load)["readiness"] == 1, "it is ready again")

    assert server.postmaster() != before


def _health(load: Load) -> dict[str, int]:
    """The state by name: 1 is SERVING, 2 NOT_SERVING."""
    stub: Any = health_pb2_grpc.HealthStub(load.channel)
    return {
        name: int(stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=20).status)
        for name in ("liveness", "readiness", "")
    }


@contextmanager
def _standing_still(server: ServerProcess) -> Iterator[None]:
    """Stop the postmaster first, so that it starts no process that is not stopped."""
    processes = server.postgres()
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(processes):
            os.kill(pid, signal.SIGCONT)


def _get(load: Load, token: str, *, timeout: float) -> str:
    """The status of a read."""
    request = GetMemoryRequest(key="nobody's")
    with pytest.raises(grpc.RpcError) as caught:
        MemoryServiceStub(load.channel).GetMemory(request, metadata=bearer(token), timeout=timeout)
    return str(caught.value.code().name)
