"""The clients of all languages call all the time, while the server is restarted and its workers are killed."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import muniment
from muniment import Classification
from tests.clients.conformance.clients import CLIENTS, Client
from tests.clients.conformance.toolchains import make
from tests.proof.faults.processes import WORKERS, ServerProcess, wait_until

pytestmark = pytest.mark.proof
_RESTARTS = 10
_ROUNDS = 20_000
"""More than the fastest client makes before the test ends the callers."""
_SLOWEST = 120.0
_DEADLINE_MS = 60_000
"""A busy machine needs more than the usual ten seconds for a restart."""


class Caller:
    """The runner of one client, which makes calls one after the other."""

    def __init__(self, client: Client, server: ServerProcess, folder: Path) -> None:
        self.name = client.name
        self._steps = list(_steps(client.name))
        file = folder / f"{client.name}.json"
        file.write_text(json.dumps({"scenarios": [{"name": client.name, "steps": self._steps}]}))
        environment = {"MUNIMENT_ADDRESS": server.address, "MUNIMENT_HOST_KEY": server.host_key}
        self._errors = folder / f"{client.name}.errors"
        with self._errors.open("w") as errors:
            self.process = client.start(str(file), environment, errors=errors)
        self.lines: list[Any] = []
        self._reading = Thread(target=self._read)
        self._reading.start()

    def made(self, calls: int) -> bool:
        """Whether it has made that many calls. Fails if the runner has ended."""
        errors = self._errors.read_text()[-4000:]
        assert self.process.poll() is None, f"{self.name}: {len(self.lines)} of {len(self._steps)} calls: {errors}"
        return len(self.lines) >= calls

    def failures(self) -> list[Any]:
        """The calls that failed, except for those that may be lost."""
        failed = [(step, line) for step, line in self._made() if line["status"] != "OK"]
        return [line for step, line in failed if not ("may_be_lost" in step and line["status"] == "UNAVAILABLE")]

    def stored(self) -> set[str]:
        """The contents of the passages that were acknowledged."""
        return {step["request"]["content"] for step, line in self._made() if _stores(step) and line["status"] == "OK"}

    def lost(self) -> int:
        return sum(line["status"] == "UNAVAILABLE" for line in self.lines)

    def end(self) -> None:
        with self.process as process:
            process.kill()
            self._reading.join()

    def _made(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """The calls that were answered, with their answers."""
        return zip(self._steps, self.lines, strict=False)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # the last one may have been cut off
                self.lines.append(json.loads(line))


def test_no_call_that_may_be_repeated_fails_and_none_has_its_effect_twice(server, tmp_path, capsys):
    repeating = [client for client in CLIENTS if client.repeats]
    clients = [client for client in repeating if not client.missing and client.is_built] or repeating
    for client in clients:
        make(client)
    with ExitStack() as stack:
        callers = [Caller(client, server, tmp_path) for client in clients]
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
    yield {"as": "host", "call": "AgentService.CreateAgent", "request": {"agentId": agent}}
    opened = {"agentId": agent, "taint": "CLASSIFICATION_PUBLIC"}
    yield {"as": "host", "call": "SessionService.OpenSession", "request": opened, "save": {"token": "token"}}
    common = {"as": "${token}", "deadline_ms": _DEADLINE_MS}
    for number in range(_ROUNDS):
        for call, request in _round(number):
            yield common | {"call": call, "request": request}
        bare = {"call": "PassageService.StorePassage", "request": {"content": f"{number} bare"}}
        yield common | bare | {"may_be_lost": True}


def _round(number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "MemoryService.SaveMemory", {"key": f"{number % 5}", "content": f"{number}"}
    yield "MemoryService.GetMemory", {"key": f"{number % 5}"}
    yield "PassageService.StorePassage", {"passageId": str(uuid.uuid4()), "content": f"{number} given"}
    if number % 10 == 0:
        yield "NoteService.AddNote", {"noteId": str(uuid.uuid4()), "content": f"note {number}"}


def _stores(step: dict[str, Any]) -> bool:
    return bool(step["call"] == "PassageService.StorePassage")


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
