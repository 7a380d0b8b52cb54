"""RaiseTaint against SaveMemory: C41 of the threats, law 4.

Over gRPC: the barrier lets the calls into the server within a tenth of a millisecond of each other, and a random
stagger of the raise sweeps the writers' statements; the mutants below are found within tens of runs.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.store import fence
from tests.races import ledgers
from tests.races.commits import Commits
from tests.races.crew import RUNS, Crew, opened, runs_until, stagger
from tests.races.mutants import spoiled
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_SAVES = 2
_LEVELS_UP = 3
"""Each conversation rises three times, one run each: PUBLIC to INTERNAL, and so on."""


class Race:
    """Three writers in two sessions of one conversation, and a host that raises it."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self._sessions: list[Caller] = []
        self.acknowledged: set[tuple[Classification, str, str]] = set()
        self.below_the_raise: list[str] = []

    def run(self, number: int) -> None:
        """One meeting."""
        level = Classification(1 + number % _LEVELS_UP)
        if level is PUBLIC:
            self._sessions = [opened(self._arena, self._agent, PUBLIC, f"{number}") for _ in range(2)]
        one, other = self._sessions
        writers = [partial(self._write, session, f"{number}.{i}") for i, session in enumerate((one, other, one))]
        self._crew.together(*writers, partial(self._raise, other, Classification(level + 1), f"{number}.late"))

    def _write(self, session: Caller, key: str) -> None:
        for i in range(_SAVES):
            self._save(session, key, f"{key} {i}")

    def _raise(self, session: Caller, level: Classification, key: str) -> None:
        """What is saved after OK is at the new level, though every worker remembers the token at the old one."""
        stagger(self._dice)
        self._arena.host().raise_taint(session_id=session.session_id, taint=int(level))
        if self._save(session, key, "late") != level:
            self.below_the_raise.append(key)

    def _save(self, session: Caller, key: str, content: str) -> Classification:
        saved = session.save_memory(key=key, content=content).memory
        level = Classification(saved.classification)
        self.acknowledged.add((level, key, content))
        return level


@pytest.fixture
def race(arena: Service, crew: Crew, agent: str) -> Race:
    return Race(arena, crew, agent)


def test_nothing_is_committed_at_the_old_level_after_a_raise(
    race: Race, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Every acknowledged save is kept at the level it was acknowledged at, and nothing else is kept."""
    for number in range(RUNS):
        race.run(number)

    assert Commits(owner, agent).below_a_rise() == 0
    assert race.below_the_raise == []
    kept = [(version.level, version.name, version.content) for version in ledgers.versions(owner, agent)]
    assert len(kept) == len(set(kept))
    assert set(kept) == race.acknowledged
    assert set(Commits(owner, agent).taints().values()) <= {INTERNAL, CONFIDENTIAL, RESTRICTED}
    assert ledgers.broken(owner) == []
    at_each = {level.name: sum(version[0] == level for version in kept) for level in Classification}
    print(f"raise against write: {RUNS} runs, {len(kept)} saves {at_each}, 0 late")


@pytest.mark.parametrize("lock", ["FOR KEY SHARE", ""], ids=["key share", "no lock"])
def test_a_weaker_fence_would_show(lock: str, race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    with spoiled(fence._QUERIES, "save_item", "FOR NO KEY UPDATE", lock):
        runs, late = runs_until(Commits(owner, agent).below_a_rise, race.run, most=900)

    assert late > 0
    print(f"raise against write, mutant {lock or 'without lock'}: {late} late in {runs} runs")
