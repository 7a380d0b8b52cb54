"""ResetSession against RaiseTaint, OpenSession and writes of one conversation: nothing late hits the successor."""

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
    """Two sessions at CONFIDENTIAL: one is reset while the other writes and is raised, and a third is opened."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self.answers: dict[str, int] = {}
        self.acknowledged: set[tuple[Classification, str]] = set()

    def run(self, number: int) -> None:
        """One meeting. The successor writes at once: at PUBLIC, or where a later open has taken it."""
        name = f"{number}"
        one, other = (opened(self._arena, self._agent, CONFIDENTIAL, name) for _ in range(2))
        self._crew.together(
            partial(self._reset, one),
            partial(self._raise, other),
            partial(self._open, name),
            partial(self._write, other, name),
        )

    def _reset(self, session: Caller) -> None:
        self._crew.stagger(self._dice)
        successor = self._arena.host().reset_session(session_id=session.session_id)
        assert successor.session.taint == PUBLIC
        self._save("successor", Caller(self._arena.channel, successor.token), successor.session.session_id)

    def _raise(self, session: Caller) -> None:
        self._crew.stagger(self._dice)
        self._count("raise", code_of(self._arena.host().raise_taint, session_id=session.session_id, taint=4))

    def _open(self, name: str) -> None:
        self._crew.stagger(self._dice)
        try:
            third = opened(self._arena, self._agent, CONFIDENTIAL, name)
        except grpc.RpcError as error:
            self._count("open", error.code().name)
            return
        self._count("open", "OK")
        self._save("opened", third, third.session_id)

    def _write(self, session: Caller, name: str) -> None:
        for i in range(2):
            self._save("write", session, f"{name} {i}")

    def _save(self, who: str, session: Caller, content: str) -> None:
        try:
            saved = session.save_memory(key=content, content=content).memory
        except grpc.RpcError as error:
            self._count(who, error.code().name)
            return
        self._count(who, "OK")
        self.acknowledged.add((Classification(saved.classification), content))

    def _count(self, who: str, answer: str) -> None:
        self.answers[f"{who} {answer}"] = self.answers.get(f"{who} {answer}", 0) + 1


@pytest.fixture
def race(arena: Service, crew: Crew, agent: str) -> Race:
    return Race(arena, crew, agent)


def test_a_reset_ends_all_that_was_before_it(runs: int, race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    """No late raise raises its successor, no session of before stays open or writes, nothing acknowledged is lost."""
    for number in range(runs):
        race.run(number)

    commits = Commits(owner, agent)
    assert (commits.raised_after_a_reset(), commits.left_open(), commits.after_a_reset(), commits.taints_beyond()) == (
        0, 0, 0, 0,
    )  # fmt: skip
    assert {(version.level, version.content) for version in ledgers.versions(owner, agent)} == race.acknowledged
    assert broken(owner) == []
    assert set(race.answers) <= {
        "raise OK", "raise NOT_FOUND", "open OK", "open FAILED_PRECONDITION", "write OK", "write UNAUTHENTICATED",
        "opened OK", "opened UNAUTHENTICATED", "successor OK",
    }  # fmt: skip
    print(f"reset against all: {runs} runs, {race.answers}, 0 raised, 0 left open, 0 late")


@pytest.mark.proof
def test_a_raise_that_locks_no_session_would_show(race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    """A plain UPDATE of the conversation raises the successor."""
    with spoiled(HOST_QUERIES, "raise_taint", "FOR NO KEY UPDATE", ""):
        runs, raised = runs_until(Commits(owner, agent).raised_after_a_reset, race.run, most=900)

    assert raised > 0
    print(f"reset against all, mutant of a raise without lock: {raised} successors raised in {runs} runs")


@pytest.mark.proof
@pytest.mark.plain_postgres("did not show on a cluster in 1,500 runs")
def test_a_reset_in_one_statement_would_show(race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    """A session opened while the reset waits is not seen by it."""
    with (
        spoiled(HOST_QUERIES, "lock_session", "FOR NO KEY UPDATE", ""),
        spoiled(
            HOST_QUERIES,
            "reset_session",
            "agent.known_from <= %(ceiling)s )",
            "agent.known_from <= %(ceiling)s ) FOR NO KEY UPDATE",
        ),
    ):
        runs, left = runs_until(Commits(owner, agent).left_open, race.run, most=1500)

    assert left > 0
    print(f"reset against all, mutant of one statement: {left} sessions left open in {runs} runs")


@pytest.mark.proof
def test_a_weaker_session_lock_would_show(race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    with spoiled(SESSION_QUERIES, "save_item", "FOR NO KEY UPDATE", ""):
        runs, late = runs_until(Commits(owner, agent).after_a_reset, race.run, most=900)

    assert late > 0
    print(f"reset against all, mutant of a save without lock: {late} late in {runs} runs")
