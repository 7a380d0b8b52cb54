"""A served process, and the facts saved in it: once for all tests of this folder."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import muniment
from muniment import Classification, HostClient, SessionClient
from tests.calls.endtoend import locomo
from tests.calls.endtoend.locomo import Model
from tests.support.commands import WORDS_ALONE, Server, environment_in

_CALLERS = 4
At = tuple[str, Classification]
Sessions = Mapping[At, SessionClient]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The facts, saved; and a session of every agent at every level."""

    model: Model
    host: HostClient
    sessions: Sessions
    begun: float
    """On the monotonic clock, before the server started."""
    seconds_to_save: float
    counted: Counter[str] = field(default_factory=Counter)
    """What was done and found, for the summary."""

    def look(self, how: Callable[[At, SessionClient], Mapping[str, int]]) -> Counter[str]:
        """Look through every session, several at once; return the sums of what *how* counted."""
        total = Counter[str]()
        with ThreadPoolExecutor(_CALLERS) as pool:
            for counted in pool.map(how, self.sessions.keys(), self.sessions.values()):
                total.update(counted)
        self.counted.update(total)
        return total


@pytest.fixture(scope="package")
def loaded() -> Iterator[Loaded]:
    if not locomo.FACTS.exists():
        pytest.skip(f"NO LOCOMO DATA at {locomo.FACTS.resolve()}: name its folder in MUNIMENT_DATA")
    begun = time.monotonic()
    model = locomo.load()
    with _served() as host:
        sessions = _open_sessions(host, model)
        _save(model, sessions)
        yield Loaded(model, host, sessions, begun, time.monotonic() - begun)


@contextmanager
def _served() -> Iterator[HostClient]:
    """A host of a server with a database of its own, both ended with the block."""
    with tempfile.TemporaryDirectory(prefix="muniment-endtoend-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        arguments = ("--dev", "--data-dir", ".muniment", "--listen", "127.0.0.1:0")
        # By words alone: the vectors of thousands of passages would take minutes of each core.
        server = Server(folder, *arguments, environment=environment_in(folder, PYTHONPATH=str(WORDS_ALONE)))
        try:
            key = json.loads((folder / ".muniment" / "development.json").read_text())["host_key"]
            with muniment.connect(server.address, host_key=key, timeout=30) as host:
                yield host
        finally:
            server.end()


def _open_sessions(host: HostClient, model: Model) -> Sessions:
    for agent_id in model.agents:
        host.create_agent(agent_id)
    return {
        (agent_id, taint): host.open_session(agent_id, taint) for agent_id in model.agents for taint in Classification
    }


def _save(model: Model, sessions: Sessions) -> None:
    """Each fact by the session at its level: there is no other way to say a level."""

    def save(agent_id: str) -> None:
        for fact in model.of(agent_id):
            sessions[agent_id, fact.level].save_memory(fact.key, fact.content, tags=[fact.tag])

    with ThreadPoolExecutor(_CALLERS) as pool:
        list(pool.map(save, model.agents))
