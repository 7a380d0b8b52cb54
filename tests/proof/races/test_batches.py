"""SaveMemories, RenameMemory and DeleteMemories at once: each batch is saved as a whole, and nothing deadlocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.items import item_store
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races import ledgers
from tests.proof.races.commits import Commits
from tests.proof.races.crew import Crew, code_of, deadlocks, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_WRITERS = 4
_KEYS = [f"k{number:02}" for number in range(30)]
_WRITE_LOCK = "(SELECT session.agent FROM session) FOR NO KEY UPDATE"
_LEVELS_UP = 3


@pytest.fixture(autouse=True)
def sound(owner: psycopg.Connection[Any]) -> Iterator[None]:
    """After each race every version has its audit row, and the index and the counts agree with the rows."""
    yield
    assert broken(owner) == []


class Race:
    """Writers in conversations of their own, each with the same keys in an order of its own."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self.sessions: list[Caller] = [opened(arena, agent, INTERNAL) for _ in range(_WRITERS)]
        self.codes: Counter[str] = Counter()

    def save(self, number: int) -> None:
        """All save the same keys at once."""
        saves = (
            partial(code_of, self._save, session=each, content=f"{number}.{i}") for i, each in enumerate(self.sessions)
        )
        self.codes.update(self._crew.together(*saves))

    def contents(self) -> list[str]:
        """What is saved, each content once."""
        return sorted({one.content for one in self.sessions[0].list_memories().memories})

    def all_at_once(self, number: int) -> Counter[str]:
        """Batches, single writes, renames and deletes of many; return the status codes."""
        saver, other, renamer, deleter = self.sessions
        codes = self._crew.together(
            partial(code_of, self._save, session=saver, content=f"{number} one", tags=["t"]),
            partial(code_of, self._save, session=other, content=f"{number} other", tags=["t"]),
            *(partial(code_of, other.save_memory, key=key, content="single") for key in self._some(3)),
            *(partial(code_of, saver.delete_memory, key=key) for key in self._some(3)),
            *(partial(code_of, renamer.rename_memory, key=key, new_key=f"{key} {number}") for key in self._some(3)),
            partial(code_of, renamer.rename_memory, key=_KEYS[0], new_key=_KEYS[1]),
            partial(code_of, renamer.rename_memory, key=_KEYS[1], new_key=_KEYS[0]),
            partial(code_of, deleter.delete_memories, tag="t"),
        )
        return Counter(codes)

    def _some(self, count: int) -> list[str]:
        return self._dice.sample(_KEYS, count)

    def _save(self, session: Caller, content: str, tags: tuple[str, ...] | list[str] = ()) -> None:
        order = self._dice.sample(_KEYS, len(_KEYS))
        session.save_memories(memories=[{"key": key, "content": content, "tags": tags} for key in order])


@pytest.fixture
def race(arena: Service, crew: Crew, agent: str) -> Race:
    return Race(arena, crew, agent)


def test_the_last_batch_is_there_as_a_whole(runs: int, race: Race, owner: psycopg.Connection[Any]) -> None:
    before = deadlocks(owner)

    mixed: list[list[str]] = []
    for number in range(max(8, runs // 10)):
        race.save(number)
        if len(contents := race.contents()) != 1:
            mixed.append(contents)

    assert mixed == []
    assert race.codes.keys() == {"OK"}
    assert deadlocks(owner) == before


def test_nothing_deadlocks(runs: int, race: Race, owner: psycopg.Connection[Any]) -> None:
    """Whatever meets, each call succeeds, or finds that its key is gone or its new one is taken."""
    before = deadlocks(owner)
    codes: Counter[str] = Counter()
    for number in range(max(8, runs // 10)):
        codes += race.all_at_once(number)

    assert codes.keys() <= {"OK", "NOT_FOUND", "ALREADY_EXISTS"}
    assert deadlocks(owner) == before
    print(f"batches beside single writes, renames and deletes: {dict(codes)}, no deadlock")


@pytest.mark.proof
def test_batches_in_any_order_would_deadlock(race: Race, owner: psycopg.Connection[Any]) -> None:
    """Two guards: without the write lock the order of keys is enough; without both, batches deadlock."""
    before = deadlocks(owner)
    with ExitStack() as mutants:
        mutants.enter_context(spoiled(SESSION_QUERIES, "lock_writes", _WRITE_LOCK, _WRITE_LOCK.split(" FOR")[0]))
        for number in range(20):
            race.save(number)
        assert deadlocks(owner) == before
        mutants.enter_context(mock.patch.object(item_store, "sorted", lambda given, **_: given, create=True))
        runs, found = runs_until(lambda: deadlocks(owner) - before, race.save, most=400)

    assert found > 0
    print(f"batches in any order, without the write lock: {found} deadlocks in {runs} runs")


class RaisedConversation:
    """Two savers of batches in one conversation, and a host that raises it."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self._sessions: list[Caller] = []
        self.acknowledged: set[tuple[Classification, str, str]] = set()
        self.split: list[str] = []

    def run(self, number: int) -> None:
        """One meeting."""
        level = Classification(1 + number % _LEVELS_UP)
        if level is PUBLIC:
            self._sessions = [opened(self._arena, self._agent, PUBLIC, f"{number}") for _ in range(2)]
        savers = [partial(self._save, session, f"{number}.{i}") for i, session in enumerate(self._sessions)]
        self._crew.together(*savers, partial(self._raise, Classification(level + 1), f"{number}.late"))

    def _raise(self, level: Classification, name: str) -> None:
        self._crew.stagger(self._dice)
        session = self._sessions[0]
        self._arena.host().raise_taint(session_id=session.session_id, taint=int(level))
        if self._save(session, name) != {level}:
            self.split.append(name)

    def _save(self, session: Caller, name: str) -> set[Classification]:
        """Save a batch, and note a batch of several levels."""
        given = [{"key": f"{name}.{i}", "content": name} for i in range(5)]
        saved = session.save_memories(memories=given).memories
        levels = {Classification(one.classification) for one in saved}
        if len(levels) != 1:
            self.split.append(name)
        self.acknowledged |= {(Classification(one.classification), one.key, one.content) for one in saved}
        return levels


@pytest.fixture
def raised(arena: Service, crew: Crew, agent: str) -> RaisedConversation:
    return RaisedConversation(arena, crew, agent)


def test_no_batch_is_committed_at_the_old_level_after_a_raise(
    runs: int, raised: RaisedConversation, agent: str, owner: psycopg.Connection[Any]
) -> None:
    for number in range(runs):
        raised.run(number)

    assert Commits(owner, agent).below_a_rise() == 0
    assert raised.split == []
    kept = [(version.level, version.name, version.content) for version in ledgers.versions(owner, agent)]
    assert len(kept) == len(set(kept))
    assert set(kept) == raised.acknowledged
    print(f"raise against batches: {runs} runs, {len(kept)} memories, 0 late")


@pytest.mark.proof
def test_a_batch_without_the_session_lock_would_be_late(
    raised: RaisedConversation, agent: str, owner: psycopg.Connection[Any]
) -> None:
    with ExitStack() as mutants:
        for query in ("lock_writes", "save_item"):
            mutants.enter_context(
                spoiled(SESSION_QUERIES, query, "session.read_only FOR NO KEY UPDATE", "session.read_only")
            )
        runs, late = runs_until(Commits(owner, agent).below_a_rise, raised.run, most=900)

    assert late > 0
    print(f"raise against batches, mutant without the session lock: {late} late in {runs} runs")
