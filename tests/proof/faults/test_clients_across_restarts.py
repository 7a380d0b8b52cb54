"""The clients of all languages call all the time, while the server is restarted and its workers are killed."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

import muniment
from muniment import Classification
from tests.proof.faults.callers import Caller, made_clients
from tests.proof.faults.processes import WORKERS, ServerProcess, wait_until

pytestmark = pytest.mark.proof
_RESTARTS = 10
_ROUNDS = 20_000
"""More than the fastest client makes before the test ends the callers."""
_ROUNDS_WITH_NOTES = 1_500
"""The budget has no room for more."""
_SLOWEST = 120.0
_DEADLINE_MS = 60_000
"""A busy machine needs more than the usual ten seconds for a restart."""


def test_no_call_that_may_be_repeated_fails_and_none_has_its_effect_twice(server, tmp_path, capsys):
    at = {"address": server.address, "host_key": server.host_key}
    with ExitStack() as stack:
        callers = [Caller(client, _steps(client.name), tmp_path, **at) for client in made_clients()]
        for caller in callers:
            stack.callback(caller.end)
        seconds = 0.0
        for _ in range(_RESTARTS):
            _go_on(callers)
            begun = time.monotonic()
            assert server.terminate() == 0
            server.start()
            seconds += time.monotonic() - begun
        for _ in range(WORKERS):
            _go_on(callers)
            _kill_one_worker(server)
        _go_on(callers)

    with capsys.disabled():
        print(
            f"\n{_RESTARTS} restarts in {seconds:.1f} s; calls:",
            *((caller.name, len(caller.lines), "lost", caller.lost()) for caller in callers),
        )
    assert [failure for caller in callers for failure in caller.failures()] == []
    for caller in callers:
        found = _passages(server, caller.name)
        assert {content: count for content, count in found.items() if count > 1} == {}
        assert caller.stored() - found.keys() == set()


def _steps(agent: str) -> Iterator[dict[str, Any]]:
    """Open a session and write through it: what may be repeated, and a passage without an id, which may not."""
    of_host = {"as": "host", "deadline_ms": _DEADLINE_MS}
    yield of_host | {"call": "AgentService.CreateAgent", "request": {"agentId": agent}}
    opened = {"agentId": agent, "taint": "CLASSIFICATION_PUBLIC"}
    yield of_host | {"call": "SessionService.OpenSession", "request": opened, "save": {"token": "token"}}
    common = of_host | {"as": "${token}"}
    for number in range(_ROUNDS):
        for call, request in _round(number):
            yield common | {"call": call, "request": request}
        bare = {"call": "PassageService.StorePassage", "request": {"content": f"{number} bare"}}
        yield common | bare | {"may_be_lost": True}


def _round(number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "MemoryService.SaveMemory", {"key": f"{number % 5}", "content": f"{number}"}
    yield "MemoryService.GetMemory", {"key": f"{number % 5}"}
    yield "PassageService.StorePassage", {"passageId": str(uuid.uuid4()), "content": f"{number} given"}
    if number % 10 == 0 and number < _ROUNDS_WITH_NOTES:
        yield "NoteService.AddNote", {"noteId": str(uuid.uuid4()), "content": f"note {number}"}


def _go_on(callers: list[Caller]) -> None:
    """Wait until each has made some more calls."""
    goals = [(caller, len(caller.lines) + 60) for caller in callers]
    for caller, goal in goals:
        wait_until(partial(caller.made, goal), f"60 more calls of {caller.name}", seconds=_SLOWEST)


def _kill_one_worker(server: ServerProcess) -> None:
    wait_until(lambda: len(server.workers()) == WORKERS, "all workers", seconds=_SLOWEST)
    victim = server.workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in server.workers(), "its end")


def _passages(server: ServerProcess, agent: str) -> Counter[str]:
    """How often each content is stored."""
    with (
        muniment.connect(server.address, host_key=server.host_key) as host,
        host.open_session(agent, Classification.PUBLIC) as session,
    ):
        return Counter(passage.content for passage in session.list_passages(page_size=250))
