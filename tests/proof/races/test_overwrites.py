"""Concurrent saves and deletions of the same keys: C88 of the threats, law 9.

Over gRPC. Writers of one conversation queue at its row; those of several conversations meet at the item itself, so
most races here have a conversation for each writer.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import grpc
import psycopg
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1.memory_pb2 import Memory
from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races import ledgers
from tests.proof.races.crew import Crew, code_of, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.labels import untrusted
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_WRITERS = 8
_MEETING = 4
"""How many meet at one key."""
_TOO_LONG = 60.0

Opener = Callable[..., list[Caller]]


@pytest.fixture
def sessions(arena: Service, agent: str) -> Opener:
    """Opens sessions of this test's agent at a level: each in a conversation of its own, or all in one."""
    arena.agent(agent)
    return lambda level, count=_WRITERS, conversation_id="": [
        opened(arena, agent, level, conversation_id) for _ in range(count)
    ]


@pytest.fixture(autouse=True)
def sound(owner: psycopg.Connection[Any]) -> Iterator[None]:
    """After each race the ledgers hold; those of a mutant are its own test's to check."""
    yield
    assert broken(owner) == []


@pytest.mark.parametrize("conversation_id", ["", "one"], ids=["own conversations", "one conversation"])
def test_no_increment_of_a_counter_is_lost(
    conversation_id: str, runs: int, sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Its value is the number of acknowledged increments, and its revision one more."""
    counters = sessions(INTERNAL, conversation_id=conversation_id)
    counters[0].save_memory(key="counter", content="0")

    times = max(10, runs // _WRITERS)
    counted = crew.together(*(partial(_increment, session, times) for session in counters))
    answers: Counter[str] = sum(counted, Counter())

    last = counters[0].get_memory(key="counter").memory
    versions = ledgers.versions(owner, agent)
    assert set(answers) == {"OK", "ABORTED"}
    assert (int(last.content), len(versions) - 1) == (answers["OK"], answers["OK"])
    assert sorted(version.revision for version in versions) == list(range(1, answers["OK"] + 2))
    print(f"counter: {dict(answers)}, value {last.content}")


@pytest.mark.proof
def test_an_etag_that_is_not_checked_on_the_row_itself_would_show(
    sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    counters = sessions(INTERNAL)
    counters[0].save_memory(key="counter", content="0")
    checked = "OR (own.item_id, own.revision) = (%(etag_item)s, %(etag_revision)s)"
    with spoiled(SESSION_QUERIES, "save_item", checked, "OR own.item_id = %(etag_item)s"):
        counted = crew.together(*(partial(_increment, session, 40) for session in counters))

    answers: Counter[str] = sum(counted, Counter())
    lost = answers["OK"] - int(counters[0].get_memory(key="counter").memory.content)
    assert lost > 0
    print(f"counter, mutant that does not check the etag on the row: {lost} of {answers['OK']} increments lost")


def _increment(session: Caller, times: int) -> Counter[str]:
    answers: Counter[str] = Counter()
    for _ in range(times):
        seen = session.get_memory(key="counter").memory
        answers[code_of(session.save_memory, key="counter", content=str(int(seen.content) + 1), etag=seen.etag)] += 1
    return answers


class FirstSaves:
    """Several writers save one new key at once, twice each: their first saves meet, and their overwrites."""

    def __init__(self, crew: Crew, sessions: list[Caller]) -> None:
        self._crew = crew
        self._sessions = sessions
        self.acknowledged: list[tuple[str, str]] = []
        self.refused: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """One meeting."""
        self._crew.together(
            *(
                partial(self._save, session, f"new {number}", f"{number} {i}")
                for i, session in enumerate(self._sessions)
            )
        )

    def _save(self, session: Caller, key: str, content: str) -> None:
        for i in range(2):
            code = code_of(session.save_memory, key=key, content=f"{content} {i}")
            if code == "OK":
                self.acknowledged.append((key, f"{content} {i}"))
            else:
                self.refused[code] += 1

    def lost(self, kept: list[ledgers.Kept]) -> int:
        """Acknowledged saves that the ledger does not have once."""
        found = Counter((version.name, version.content) for version in kept)
        return sum(found[saved] != 1 for saved in self.acknowledged)


def test_every_one_of_several_concurrent_first_saves_is_kept(
    runs: int, sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    keys = runs // 2  # two meetings each: at the first save, and at the overwrite
    race = FirstSaves(crew, sessions(PUBLIC, _MEETING))
    for number in range(keys):
        race.run(number)

    kept = ledgers.versions(owner, agent)
    assert race.refused == Counter()
    assert race.lost(kept) == 0
    assert len(kept) == len(race.acknowledged) == 2 * _MEETING * keys
    print(f"first saves: {keys} keys, {len(kept)} versions acknowledged and kept")


def test_the_same_save_by_all_at_once_is_one_version(
    runs: int, sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    keys = max(5, runs // 20)
    everyone = sessions(PUBLIC, _MEETING)
    for number in range(keys):
        saves = [partial(session.save_memory, key=f"same {number}", content="x", tags=["t"]) for session in everyone]
        answers = crew.together(*saves)
        assert len({answer.memory.etag for answer in answers}) == 1

    assert len(ledgers.versions(owner, agent)) == keys


@pytest.mark.proof
def test_a_revision_counted_from_the_snapshot_would_show(
    sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Two overwrites count to the same number, and one is not kept."""
    race = FirstSaves(crew, sessions(PUBLIC, _MEETING))
    seen = """(SELECT max(seen.revision) FROM item AS seen
                WHERE (seen.tenant, seen.agent, seen.kind, seen.name)
                      = (excluded.tenant, excluded.agent, excluded.kind, excluded.name)
                  AND seen.delete_time IS NULL)"""
    with spoiled(
        SESSION_QUERIES, "save_item", "ELSE own.revision + (NOT it.same)::int END", f"ELSE coalesce({seen}, 1) + 1 END"
    ):
        runs, refused = runs_until(lambda: race.refused["INTERNAL"], race.run, most=400)

    assert refused > 0
    print(f"first saves, mutant that counts from the snapshot: {refused} saves failed in {runs} runs")


@pytest.mark.proof
@pytest.mark.plain_postgres("on a cluster, steps of a statement see what earlier ones wrote")
def test_a_ledger_that_copies_what_the_snapshot_shows_would_show(
    sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Another writer's content is kept twice, and this one's is lost."""
    race = FirstSaves(crew, sessions(PUBLIC, _MEETING))
    seen = """coalesce((SELECT seen.content FROM item AS seen
                         WHERE (seen.tenant, seen.agent, seen.kind, seen.name)
                               = (%(tenant)s, new.agent, %(kind)s, %(name)s)
                           AND seen.delete_time IS NULL), %(content)s)"""
    with spoiled(SESSION_QUERIES, "save_item", "%(kind)s, %(name)s, new.content,", f"%(kind)s, %(name)s, {seen},"):
        runs, lost = runs_until(lambda: race.lost(ledgers.versions(owner, agent)), race.run, most=400)
    owner.execute("DELETE FROM vault.agent WHERE agent_id = %s", [agent])  # its ledgers are broken, as they should

    assert lost > 0
    print(f"first saves, mutant that keeps what the snapshot shows: {lost} lost in {runs} runs")


class Mix:
    """Saves, deletions, etags and expiry on few keys, at one level over a lower one that changes too."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(seed)
        self.answers: Counter[str] = Counter()
        self.acknowledged: list[tuple[Classification, str]] = []
        self.deleted = 0
        self.accepted: Counter[str] = Counter()
        """With which etags of own-level versions a save or a deletion was accepted: each is good for one."""

    def loop(self, session: Caller, who: str, times: int) -> None:
        """One writer's calls."""
        for number in range(times):
            key = f"key {self._dice.randrange(3)}"
            seen = self._seen(session, key) if self._dice.random() < 0.4 else Memory()
            if self._dice.random() < 0.3:
                self._delete(session, key, seen)
            else:
                self._save(session, key, f"{who} {number}", seen)

    def _seen(self, session: Caller, key: str) -> Memory:
        try:
            seen: Memory = session.get_memory(key=key).memory
        except grpc.RpcError as error:
            self.answers[f"get {error.code().name}"] += 1
            return Memory()
        return seen

    def _save(self, session: Caller, key: str, content: str, seen: Memory) -> None:
        expires = {"expire_time": _soon()} if self._dice.random() < 0.3 else {}
        try:
            saved = session.save_memory(key=key, content=content, etag=seen.etag, **expires).memory
        except grpc.RpcError as error:
            self.answers[f"save {error.code().name}"] += 1
            return
        self.answers["save OK"] += 1
        self.acknowledged.append((Classification(saved.classification), content))
        if seen.classification == saved.classification:  # that of a lower version is good again after a deletion
            self.accepted[seen.etag] += 1

    def _delete(self, session: Caller, key: str, seen: Memory) -> None:
        code = code_of(session.delete_memory, key=key, etag=seen.etag)
        self.answers[f"delete {code}"] += 1
        if code == "OK":
            self.deleted += 1
            self.accepted.update([seen.etag] if seen.etag else [])


def test_a_mix_of_everything_leaves_what_was_acknowledged(
    runs: int, sessions: Opener, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    mix = Mix(agent)
    times = max(10, runs // _WRITERS)
    everyone = [*sessions(INTERNAL, 6), *sessions(PUBLIC, 2)]
    begun = time.monotonic()
    crew.together(*(partial(mix.loop, session, f"{i}", times) for i, session in enumerate(everyone)))

    assert time.monotonic() - begun < _TOO_LONG
    kept = [(version.level, version.content) for version in ledgers.versions(owner, agent)]
    assert sorted(kept) == sorted(mix.acknowledged)
    assert _deleted(owner, agent) == mix.deleted
    assert [etag for etag, times in mix.accepted.items() if times > 1] == []
    assert set(mix.answers) <= {
        "get NOT_FOUND", "save OK", "save ABORTED", "save INVALID_ARGUMENT", "delete OK", "delete ABORTED",
        "delete NOT_FOUND", "delete FAILED_PRECONDITION",
    }  # fmt: skip
    print(
        f"mix: {len(everyone)} writers, {dict(mix.answers)}, {len(kept)} kept, {len(mix.accepted)} etags accepted once"
    )


def _deleted(owner: psycopg.Connection[Any], agent: str) -> int:
    """How many items of the agent are deleted."""
    questions = [
        f"SELECT count(*) FROM {untrusted(level).role}.item JOIN vault.agent USING (tenant, agent)"
        " WHERE agent.agent_id = %s AND item.delete_time IS NOT NULL"
        for level in Classification
    ]
    return sum(owner.execute(question.encode(), [agent]).fetchone()[0] for question in questions)  # type: ignore[index]


def _soon() -> Timestamp:
    """A time that passes while the race runs."""
    time = Timestamp()
    time.FromDatetime(datetime.now(UTC) + timedelta(milliseconds=random.uniform(2, 40)))
    return time
