"""Recorded runs of concurrent sessions, with raises in between: each key is linearizable, and commits keep law 4."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Any

import grpc
import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import HOST_QUERIES, SESSION_QUERIES
from tests.proof.races.commits import Commits
from tests.proof.races.crew import Crew, opened, runs_until
from tests.proof.races.histories import Operation, order_of
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_BEGIN_AT = {"low": PUBLIC, "high": INTERNAL}
_RAISES = (("low", INTERNAL), ("high", CONFIDENTIAL), ("low", CONFIDENTIAL))
_KEYS = ("one", "other")
_CALLS = 8
"""Of each session."""


class Recorder:
    """Two conversations with two sessions each, and a host that raises them, all at once."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self.calls = 0
        self.unexplained: list[list[Operation]] = []

    def run(self, number: int) -> None:
        """Record one run, and look for an order of each key's calls. The keys are the run's own."""
        names = {name: f"{number}-{name}" for name in _BEGIN_AT}
        sessions = [
            (name, opened(self._arena, self._agent, level, names[name]))
            for name, level in _BEGIN_AT.items()
            for _ in range(2)
        ]
        keys = [f"{number} {key}" for key in _KEYS]
        seeds = [self._dice.random() for _ in range(len(sessions) + 1)]
        jobs = [
            partial(self._session, session, name, keys, random.Random(seed))
            for (name, session), seed in zip(sessions, seeds, strict=False)
        ]
        recorded = self._crew.together(*jobs, partial(self._host, dict(sessions), random.Random(seeds[-1])))
        self._check(recorded, keys)

    def _check(self, recorded: list[list[tuple[str, Operation]]], keys: list[str]) -> None:
        everything = [each for operations in recorded for each in operations]
        self.calls += len(everything)
        for key in keys:
            history = [operation for name, operation in everything if name in (key, "")]
            if order_of(history, {name: int(level) for name, level in _BEGIN_AT.items()}) is None:
                self.unexplained.append(sorted(history, key=lambda operation: operation.start))

    def _session(self, session: Caller, name: str, keys: list[str], dice: random.Random) -> list[tuple[str, Operation]]:
        rpcs = dice.choices(("SaveMemory", "GetMemory", "DeleteMemory"), (4, 4, 1), k=_CALLS)
        return [
            (key, _call(session, name, rpc, key, f"{dice.random()}")) for rpc in rpcs for key in [dice.choice(keys)]
        ]

    def _host(self, sessions: dict[str, Caller], dice: random.Random) -> list[tuple[str, Operation]]:
        raised = []
        for name, level in _RAISES:
            self._crew.stagger(dice, longest=0.02)
            start = time.monotonic()
            self._arena.host().raise_taint(session_id=sessions[name].session_id, taint=int(level))
            raised.append(("", Operation(start, time.monotonic(), "RaiseTaint", name, int(level))))
        return raised


def _call(session: Caller, name: str, rpc: str, key: str, content: str) -> Operation:
    start = time.monotonic()
    try:
        saves = rpc == "SaveMemory"
        answer = session.save_memory(key=key, content=content) if saves else session.call(rpc, key=key)
    except grpc.RpcError as error:
        if error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION):
            raise
        return Operation(start, time.monotonic(), rpc, name)
    end = time.monotonic()
    if rpc == "DeleteMemory":
        return Operation(start, end, rpc, name, deleted=True)
    return Operation(start, end, rpc, name, answer.memory.classification, answer.memory.content)


@pytest.fixture
def recorder(arena: Service, crew: Crew, agent: str) -> Recorder:
    return Recorder(arena, crew, agent)


def test_every_history_has_an_order(runs: int, recorder: Recorder, agent: str, owner: psycopg.Connection[Any]) -> None:
    for number in range(runs):
        recorder.run(number)

    assert recorder.unexplained == []
    assert Commits(owner, agent).below_a_rise() == 0
    assert broken(owner) == []
    print(f"histories: {runs} runs, {recorder.calls} calls, 0 without an order, 0 late")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("raise_taint", "AND (found.taint < %(taint)s OR found.trusted AND NOT %(trusted)s)", "AND FALSE"),
        ("save_item", "content = excluded.content", "content = own.content"),
        ("get_item", "ORDER BY visible.label DESC", "ORDER BY visible.label"),
    ],
    ids=["a raise without effect", "a lost update", "the shadow upside down"],
)
def test_a_broken_server_would_show(query: str, right: str, wrong: str, recorder: Recorder) -> None:
    queries = HOST_QUERIES if query in HOST_QUERIES else SESSION_QUERIES
    with spoiled(queries, query, right, wrong):
        runs, found = runs_until(lambda: len(recorder.unexplained), recorder.run, most=200)

    assert found > 0
    print(f"histories, mutant of {query}: {found} without an order in {runs} runs")
