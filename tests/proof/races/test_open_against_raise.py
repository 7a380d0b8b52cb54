"""OpenSession at several levels against RaiseTaint and writes, on one conversation.

Over gRPC, like the other races of hosts: what counts is what a host sees.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import grpc
import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import HOST_QUERIES, SESSION_QUERIES
from tests.proof.races import ledgers
from tests.proof.races.commits import Commits
from tests.proof.races.crew import Crew, code_of, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


class Race:
    """A conversation with a writer at PUBLIC; two opens and a raise, each at a random level."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self.answers: dict[str, int] = {}
        self.reached: dict[str, int] = {}
        self.acknowledged: set[tuple[Classification, str]] = set()

    def run(self, number: int) -> None:
        """One meeting."""
        name = f"{number}"
        writer = opened(self._arena, self._agent, PUBLIC, name)
        levels = [self._dice.choice((INTERNAL, CONFIDENTIAL, RESTRICTED)) for _ in range(3)]
        reached = self._crew.together(
            partial(self._open, name, levels[0]),
            partial(self._open, name, levels[1]),
            partial(self._raise, writer, levels[2]),
            partial(self._write, writer, name),
        )
        self.reached[name] = max(PUBLIC, *reached)

    def wrong_taints(self, found: dict[str, int]) -> int:
        """Conversations whose taint is not the highest that any call returned OK for."""
        return sum(found[name] != reached for name, reached in self.reached.items())

    def _open(self, name: str, level: Classification) -> Classification:
        """Open, and write at once."""
        self._crew.stagger(self._dice)
        try:
            session = opened(self._arena, self._agent, level, name)
        except grpc.RpcError as error:
            self._count(f"open {error.code().name}")
            return PUBLIC
        self._count("open OK")
        self._save(session, f"{name} {session.session_id}")
        return level

    def _raise(self, writer: Caller, level: Classification) -> Classification:
        self._crew.stagger(self._dice)
        code = code_of(self._arena.host().raise_taint, session_id=writer.session_id, taint=int(level))
        self._count(f"raise {code}")
        return level if code == "OK" else PUBLIC

    def _write(self, writer: Caller, name: str) -> Classification:
        for i in range(2):
            self._save(writer, f"{name} by the first {i}")
        return PUBLIC

    def _save(self, session: Caller, content: str) -> None:
        saved = session.save_memory(key=content, content=content).memory
        self.acknowledged.add((Classification(saved.classification), content))

    def _count(self, answer: str) -> None:
        self.answers[answer] = self.answers.get(answer, 0) + 1


@pytest.fixture
def race(arena: Service, crew: Crew, agent: str) -> Race:
    return Race(arena, crew, agent)


def test_the_taint_is_the_highest_that_was_acknowledged(
    runs: int, race: Race, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """No session, whoever opened it at whatever level, writes below the taint once the rise was acknowledged."""
    for number in range(runs):
        race.run(number)

    commits = Commits(owner, agent)
    assert race.wrong_taints(commits.taints()) == 0
    assert commits.below_a_rise() == 0
    assert set(race.answers) == {"open OK", "open FAILED_PRECONDITION", "raise OK"}
    assert {(version.level, version.content) for version in ledgers.versions(owner, agent)} == race.acknowledged
    assert broken(owner) == []
    print(f"open against raise: {runs} runs, {race.answers}, {len(race.acknowledged)} saves, 0 late, 0 wrong taints")


@pytest.mark.proof
@pytest.mark.plain_postgres("on a cluster, the mutant shows as a call that fails")
def test_an_open_that_lowers_the_mark_would_show(race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    commits = Commits(owner, agent)
    with spoiled(HOST_QUERIES, "open_session", "greatest(marked.taint, excluded.taint)", "excluded.taint"):
        runs, wrong = runs_until(lambda: race.wrong_taints(commits.taints()), race.run, most=400)

    assert wrong > 0
    print(f"open against raise, mutant that lowers the mark: {wrong} wrong taints in {runs} runs")


@pytest.mark.proof
@pytest.mark.plain_postgres("Citus does not run the mutant's subquery")
def test_an_open_that_goes_by_its_snapshot_would_show(race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    """As if the mark were read before the wait, and written after it."""
    commits = Commits(owner, agent)
    seen = """greatest(excluded.taint, (
        SELECT seen.taint FROM vault.conversation AS seen
         WHERE (seen.tenant, seen.agent, seen.conversation_id)
               = (marked.tenant, marked.agent, marked.conversation_id)))"""
    with spoiled(HOST_QUERIES, "open_session", "greatest(marked.taint, excluded.taint)", seen):
        runs, wrong = runs_until(lambda: race.wrong_taints(commits.taints()), race.run, most=1500)

    assert wrong > 0
    print(f"open against raise, mutant that goes by its snapshot: {wrong} wrong taints in {runs} runs")


@pytest.mark.proof
def test_a_weaker_session_lock_would_show(race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    with spoiled(SESSION_QUERIES, "save_item", "FOR NO KEY UPDATE", "FOR KEY SHARE"):
        runs, late = runs_until(Commits(owner, agent).below_a_rise, race.run, most=900)

    assert late > 0
    print(f"open against raise, mutant FOR KEY SHARE: {late} late in {runs} runs")
