"""Callers with a valid token who try to stop the others, against a real server. Each promise has a bound.

Loads and machine are shared with the load generators, so rates are compared within one run: rounds with and without the
attack take turns, and medians are compared.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

from muniment.v1.agent_service_pb2 import CreateAgentRequest
from muniment.v1.agent_service_pb2_grpc import AgentServiceStub
from muniment.v1.classification_pb2 import (
    CLASSIFICATION_CONFIDENTIAL,
    CLASSIFICATION_INTERNAL,
    CLASSIFICATION_PUBLIC,
    CLASSIFICATION_RESTRICTED,
)
from muniment.v1.memory_service_pb2 import GetMemoryRequest, SaveMemoryRequest
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.session_service_pb2 import OpenSessionRequest, RaiseTaintRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from tests.proof.faults.load import bearer
from tests.proof.faults.processes import ServerProcess

pytestmark = [pytest.mark.proof, pytest.mark.alone]

_ROUND_SECONDS = 2.0
_ROUNDS = 5
_MIB = 1024 * 1024


class Host(NamedTuple):
    """A tenant's host."""

    channel: grpc.Channel
    key: str

    def session(self, agent: str) -> tuple[str, str]:
        """The id and the token of a new session of an agent, which may be new."""
        metadata = bearer(self.key)
        try:
            AgentServiceStub(self.channel).CreateAgent(CreateAgentRequest(agent_id=agent), metadata=metadata)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                raise
        opened = SessionServiceStub(self.channel).OpenSession(
            OpenSessionRequest(agent_id=agent, taint=CLASSIFICATION_PUBLIC), metadata=metadata
        )
        return opened.session.session_id, opened.token

    def token(self, agent: str) -> str:
        """The token of a new session that has one memory."""
        _, token = self.session(agent)
        save = MemoryServiceStub(self.channel).SaveMemory
        save(SaveMemoryRequest(key="plan", content="whale"), metadata=bearer(token))
        return token


class Served(NamedTuple):
    """How many saves a victim got, and how long the slowest but one in a hundred took."""

    rate: float
    p99: float


@pytest.fixture
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    """A connection of the honest."""
    with grpc.insecure_channel(server.address) as channel:
        yield channel


@pytest.fixture
def host(server: ServerProcess, channel: grpc.Channel) -> Host:
    """The host of the attackers."""
    return Host(channel, server.host_key)


@pytest.fixture
def victim(server: ServerProcess, channel: grpc.Channel) -> str:
    """The token of a session of another tenant."""
    return tenant(server, channel, "beta").token("bob")


def tenant(server: ServerProcess, channel: grpc.Channel, name: str) -> Host:
    """The host of another tenant."""
    command = [str(Path(sys.executable).parent / "muniment"), "host-key", "create", "--tenant", name]
    options = ["--ceiling", "restricted", "--quiet", "--data-dir", str(server.data_dir)]
    return Host(
        channel, subprocess.run([*command, *options], check=True, capture_output=True, text=True).stdout.strip()
    )


@contextmanager
def attack(name: str, server: ServerProcess, tokens: Sequence[str]) -> Iterator[None]:
    """Attack during the block."""
    command = [sys.executable, "-m", "tests.proof.faults.attack", name, server.address, str(len(tokens))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{token}\n" for token in tokens))
        process.stdin.flush()
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        yield
        process.stdin.close()


def served(server: ServerProcess, token: str) -> Served:
    """Two threads save small memories, one after the other."""
    took: list[float] = []
    end = time.monotonic() + _ROUND_SECONDS

    def save(number: int) -> None:
        with grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub = MemoryServiceStub(channel)
            while time.monotonic() < end:
                begun = time.monotonic()
                stub.SaveMemory(SaveMemoryRequest(key=f"k{number}", content=str(begun)), metadata=bearer(token))
                took.append(time.monotonic() - begun)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Served(len(took) / _ROUND_SECONDS, statistics.quantiles(took, n=100)[98] if len(took) > 1 else 99.0)


def compared(server: ServerProcess, victim: str, one: Any, other: Any) -> tuple[float, float]:
    """The victim's rate and p99 during *one* attack, as multiples of those during the *other*."""
    results: dict[int, list[Served]] = {0: [], 1: []}
    for _ in range(_ROUNDS):
        for number, load in enumerate((one, other)):
            with load():
                results[number].append(served(server, victim))
    rates, slowest = (
        [statistics.median(getattr(result, name) for result in results[number]) for number in (0, 1)]
        for name in ("rate", "p99")
    )
    print(f"saves a second {rates[0]:.0f} / {rates[1]:.0f}; p99 {slowest[0] * 1000:.0f} / {slowest[1] * 1000:.0f} ms")
    return rates[0] / rates[1], slowest[0] / slowest[1]


@pytest.mark.parametrize("sessions", [1, 20])
def test_a_hundred_stalled_calls_a_second_cost_others_no_more_than_as_many_honest_reads(
    server: ServerProcess, host: Host, victim: str, sessions: int
) -> None:
    tokens = [host.token(f"a{number}") for number in range(sessions)]
    rate, _ = compared(server, victim, lambda: attack("stall", server, tokens), lambda: attack("read", server, tokens))

    assert rate >= 0.8


def test_one_session_with_200_calls_in_flight_costs_no_more_than_honest_tenants_do(
    server: ServerProcess, channel: grpc.Channel, host: Host, victim: str
) -> None:
    one = [host.token("a")]
    many = [tenant(server, channel, f"t{number}").token("a") for number in range(10)]
    rate, slowest = compared(
        server, victim, lambda: attack("flood", server, one), lambda: attack("flood", server, many)
    )

    assert rate >= 0.8
    assert slowest <= 3


@pytest.mark.parametrize("written", ["write", "write-many"])
def test_the_taint_of_a_session_under_16_writers_is_raised_within_a_second(
    written: str, server: ServerProcess, host: Host
) -> None:
    took = []
    for level in (CLASSIFICATION_INTERNAL, CLASSIFICATION_CONFIDENTIAL, CLASSIFICATION_RESTRICTED):
        session_id, token = host.session("a")
        with attack(written, server, [token]):
            begun = time.monotonic()
            SessionServiceStub(host.channel).RaiseTaint(
                RaiseTaintRequest(session_id=session_id, taint=level), metadata=bearer(host.key), timeout=20
            )
            took.append(time.monotonic() - begun)
    print("raised in", [f"{seconds:.2f} s" for seconds in took])

    assert statistics.median(took) <= 1
    assert max(took) <= 3


def test_285_unread_pages_take_at_most_200_mib(server: ServerProcess, host: Host, victim: str) -> None:
    _, token = host.session("a")
    save = MemoryServiceStub(host.channel).SaveMemory
    for number in range(50):
        save(SaveMemoryRequest(key=f"k{number}", content="word " * 13_000), metadata=bearer(token))
    before = resident(server)
    with attack("leave-unread", server, [token]):
        most = 0
        for _ in range(30):
            most = max(most, resident(server) - before)
            time.sleep(0.2)
        answer = MemoryServiceStub(host.channel).GetMemory(GetMemoryRequest(key="plan"), metadata=bearer(victim))
    print(f"the workers grew by {most // _MIB} MiB")

    assert most <= 200 * _MIB
    assert answer.memory.content == "whale"


def resident(server: ServerProcess) -> int:
    """The memory of all workers together, in bytes."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in server.workers())
    return pages * resource.getpagesize()


def test_guessed_tokens_cost_the_log_and_a_valid_one_next_to_nothing(
    server: ServerProcess, host: Host, victim: str
) -> None:
    lines = len(server.log.splitlines())
    with attack("guess", server, []):
        fresh = [host.token(f"fresh-{number}") for number in range(10)]
        time.sleep(3)
    written = server.log.splitlines()[lines:]
    print(f"{len(written)} lines")

    assert len(set(fresh)) == 10
    assert len(written) <= 20
