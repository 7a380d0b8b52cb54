"""Law 2 with releases held fixed: with and without what untrusted sessions write, a trusted session observes the same.

The programs of tests/proof/noninterference release memories and blocks. Here all kinds are read. Both worlds have the
same ids and times and release the same texts; all else that is untrusted happens in the first one only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from muniment_server.domain.classification import Label
from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.proof.golden.internals import BEGINNING, Stand, standing
from tests.support.releases import approval, fields
from tests.support.services import Caller, Outcome

SOURCES = (Label.PUBLIC, Label.INTERNAL)
TARGET = Label.INTERNAL_TRUSTED
WORDS = ("trains", "hotel", "Friday", "night", "rules")
KEYS = ("plan", "hotel", "rules")
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ListMemories", {}),
    ("ListMemories", {"tag": "trip"}),
    ("SearchMemories", {"query": "night trains on Friday"}),
    ("SearchMemories", {"query": "hotel"}),
    ("GetMemory", {"key": "plan"}),
    ("ListVersions", {"kind": 1, "name": "hotel", "with_revisions": True}),
    ("ListNotes", {}),
    ("RenderPrompt", {}),
    ("SearchPassages", {"query": "rules"}),
)


class World:
    """One server, and all that a trusted session has observed there."""

    def __init__(self, stand: Stand, program: int) -> None:
        self._stand, self._name = stand, f"program {program}"
        self._time, self._calls = BEGINNING, 0
        host, self._asks, self._approves = (
            Caller(stand.channel, stand.add_host(self._name, 4, name)) for name in ("host", "asks", "approves")
        )
        self.call(host, "CreateAgent", agent_id="alice")
        opened = {label: self._opened(host, label) for label in (*SOURCES, TARGET)}
        self.untrusted = [opened[label] for label in SOURCES]
        self.trusted = opened[TARGET]
        self.observed: list[Outcome] = []

    def _opened(self, host: Caller, label: Label) -> Caller:
        given = {"agent_id": "alice", "taint": int(label.level), "integrity": int(label.integrity)}
        return host.session(self.call(host, "OpenSession", **given))

    def call(self, caller: Caller, rpc: str, **given: Any) -> Any:
        self._begin()
        return caller.call(rpc, **given)

    def observe(self) -> None:
        for rpc, given in READS:
            self._begin()
            self.observed.append(self.trusted.observe(rpc, **given))

    def release(self, source: int, key: str, content: str) -> None:
        self.call(self.untrusted[source], "SaveMemory", key=key, content=content, tags=["trip"])
        asked = fields(SOURCES[source], TARGET, content, name=key)
        release = self.call(self._asks, "RequestRelease", **asked).release
        self.call(self._approves, "ApproveRelease", **approval(release))

    def skip(self) -> None:
        """As much time as an operation takes that happens in the other world."""
        self._begin()

    def _begin(self) -> None:
        self._calls += 1
        self._time += timedelta(seconds=1)
        self._stand.begin(f"{self._name}/{self._calls}", self._time)


def steps(dice: random.Random) -> list[Callable[[World, bool], None]]:
    """A program: each step gets the world, and whether the untrusted sessions do more there than the releases need."""
    return [_step(dice) for _ in range(25)]


def _step(dice: random.Random) -> Callable[[World, bool], None]:
    source, key, text = dice.randrange(2), dice.choice(KEYS), " ".join(dice.choices(WORDS, k=4))
    writes: list[tuple[str, dict[str, Any]]] = [
        ("SaveMemory", {"key": key, "content": text, "tags": ["trip"]}),
        ("AddNote", {"content": text}),
        ("StorePassage", {"content": text, "thread": "trip"}),
        ("UpdateBlock", {"label": key, "content": text}),
    ]
    rpc, given = dice.choice(writes)
    match dice.randrange(5):
        case 0:
            return lambda world, _: world.release(source, key, text)
        case 1:
            return lambda world, _: world.call(world.trusted, rpc, **given)
        case 2:
            return lambda world, _: world.observe()
        case _:
            return lambda world, noisy: world.call(world.untrusted[source], rpc, **given) if noisy else world.skip()


@pytest.mark.parametrize("program", range(6))
def test_c98_nothing_but_the_releases_reaches_a_trusted_session(postgres: EmbeddedPostgres, program: int) -> None:
    with standing(postgres) as one, standing(postgres) as other:
        noisy, quiet = World(one, program), World(other, program)
        for step in steps(random.Random(program)):
            step(noisy, True)
            step(quiet, False)
        for world in (noisy, quiet):
            world.release(0, "plan", "the last word")
            world.observe()

    assert noisy.observed == quiet.observed
    assert any(b"the last word" in outcome.response for outcome in noisy.observed)
