"""Batches of the same passages at once: every id is stored once, and each stream learns only how it ended."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import grpc
import psycopg
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races import ledgers
from tests.proof.races.crew import Crew, deadlocks, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.services import Caller, Service

_STREAMS = 4
_IDS = 30
_SOON = timedelta(milliseconds=1500)
_MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def sound(owner: psycopg.Connection[Any]) -> Iterator[None]:
    """After each race every passage has its audit row, and the other way round."""
    yield
    assert broken(owner) == []


@pytest.fixture
def rounds(runs: int) -> int:
    """How often the streams meet."""
    return max(4, runs // 50)


class Race:
    """Four streams, in conversations of their own, each with the same passages in an order of its own."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        arena.agent(agent)
        self._crew = crew
        self._dice = random.Random(agent)
        self.sessions: list[Caller] = [opened(arena, agent, Classification.INTERNAL) for _ in range(_STREAMS)]
        self.given: set[str] = set()
        self.counted: Counter[str] = Counter()
        """How many passages the answers count as stored, and as existing."""
        self.wrong: list[str] = []
        """Rounds in which an answer does not count each passage, or several streams stored one, or none did."""

    def run(self, number: int) -> None:
        """One meeting."""
        self.meet([{"passage_id": str(uuid.uuid4()), "content": f"{number} {i}"} for i in range(_IDS)])

    def meet(self, batch: list[dict[str, Any]]) -> None:
        """Every stream brings this batch."""
        self.given |= {passage["passage_id"] for passage in batch}
        orders = [self._dice.sample(batch, len(batch)) for _ in self.sessions]
        streams = zip(self.sessions, orders, strict=True)
        answers = self._crew.together(*(partial(_import, session, order) for session, order in streams))
        for answer in answers:
            self.counted.update(answer)
        stored = sum(answer["stored"] for answer in answers)
        if (
            stored != len(batch)
            or any(answer != {**answer, "ended OK": 1} for answer in answers)
            or any(answer["stored"] + answer["existing"] != len(batch) for answer in answers)
        ):
            self.wrong.append(f"{stored} stored of {len(batch)}: {answers}")


def _import(session: Caller, batch: list[dict[str, Any]]) -> Counter[str]:
    try:
        answer = session.import_passages(*batch)
    except grpc.RpcError as error:
        return Counter({f"ended {error.code().name}": 1})
    return Counter({"ended OK": 1, "stored": answer.stored_count, "existing": answer.existing_count})


@pytest.fixture
def race(arena: Service, crew: Crew, agent: str) -> Iterator[Race]:
    """With statements that take a millisecond for each passage, so that they meet while they insert."""
    with spoiled(
        SESSION_QUERIES, "store_passages", "given.content, given.tags", "given.content || pg_sleep(0.001), given.tags"
    ):
        yield Race(arena, crew, agent)


def _live(owner: psycopg.Connection[Any], agent: str) -> Counter[str]:
    """How often each id is stored and not deleted."""
    rows = owner.execute(
        "SELECT item.name FROM muniment_internal.item JOIN vault.agent USING (tenant, agent)"
        " WHERE agent.agent_id = %s AND item.kind = 4 AND item.delete_time IS NULL",
        [agent],
    ).fetchall()
    return Counter(name for (name,) in rows)


def test_the_same_passages_in_any_order_are_each_stored_once(
    rounds: int, race: Race, agent: str, owner: psycopg.Connection[Any]
) -> None:
    before = deadlocks(owner)
    for number in range(rounds):
        race.run(number)

    assert race.wrong == []
    assert race.counted == {
        "ended OK": _STREAMS * rounds, "stored": _IDS * rounds, "existing": (_STREAMS - 1) * _IDS * rounds,
    }  # fmt: skip
    assert _live(owner, agent) == Counter(race.given)
    assert deadlocks(owner) == before
    print(f"imports: {rounds} rounds of {_STREAMS} streams, {dict(race.counted)}, 0 deadlocks")


def test_the_same_passages_over_expired_ones_are_each_stored_once(
    rounds: int, race: Race, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Whoever is first clears them away, in the order of their ids: others that wait do not wait for one another."""
    before = deadlocks(owner)
    for number in range(rounds // 2):
        ids = [str(uuid.uuid4()) for _ in range(_IDS)]
        race.sessions[0].import_passages(
            *({"passage_id": each, "content": "old", "expire_time": _in(_MINUTE)} for each in ids)
        )
        _expire(owner, ids)
        race.meet([{"passage_id": each, "content": f"{number}"} for each in ids])

    assert race.wrong == []
    assert deadlocks(owner) == before
    kept = ledgers.versions(owner, agent, kind=ItemKind.PASSAGE)
    assert len(kept) == 2 * len(race.given)
    assert _live(owner, agent) == Counter(race.given)
    print(f"imports over expired: {rounds // 2} rounds, {dict(race.counted)}, 0 deadlocks")


def test_one_of_two_concurrent_stores_of_an_expired_id_stores(
    rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """The other finds it: the same text is the same passage, another is refused."""
    arena.agent(agent)
    sessions = [opened(arena, agent, Classification.INTERNAL) for _ in range(_STREAMS)]
    answers: Counter[str] = Counter()
    for number in range(rounds):
        passage_id = str(uuid.uuid4())
        sessions[0].store_passage(passage_id=passage_id, content="old", expire_time=_in(_MINUTE))
        _expire(owner, [passage_id])
        texts = ["same"] * _STREAMS if number % 2 else [f"{i}" for i in range(_STREAMS)]
        found = crew.together(
            *(partial(_store, session, passage_id, text) for session, text in zip(sessions, texts, strict=True))
        )
        answers.update(f"{'same' if number % 2 else 'others'} {code}" for code, _ in found)
        assert len({time for _, time in found if time}) == 1

    assert answers == {
        "same OK": rounds // 2 * _STREAMS, "others OK": rounds // 2,
        "others ALREADY_EXISTS": rounds // 2 * (_STREAMS - 1),
    }  # fmt: skip
    assert set(_live(owner, agent).values()) == {1}
    print(f"stores over one that expired: {dict(answers)}")


@pytest.mark.proof
def test_batches_in_the_order_they_are_given_would_deadlock(race: Race, owner: psycopg.Connection[Any]) -> None:
    before = deadlocks(owner)
    with spoiled(
        SESSION_QUERIES,
        "store_passages",
        "ORDER BY given.name ON CONFLICT",
        "ORDER BY given.position ON CONFLICT",
    ):
        runs, found = runs_until(lambda: deadlocks(owner) - before, race.run, most=40, batch=4)

    assert found > 0
    print(f"imports, mutant that stores in the order given: {found} deadlocks in {runs} rounds, {dict(race.counted)}")


def _store(session: Caller, passage_id: str, content: str) -> tuple[str, str]:
    """The status, and when the passage that is there was made."""
    try:
        passage = session.store_passage(passage_id=passage_id, content=content).passage
    except grpc.RpcError as error:
        return str(error.code().name), ""
    return "OK", passage.create_time.ToJsonString()


def _in(ahead: timedelta) -> Timestamp:
    time = Timestamp()
    time.FromDatetime(datetime.now(UTC) + ahead)
    return time


def _expire(owner: psycopg.Connection[Any], ids: list[str]) -> None:
    """As if their time had passed, without waiting for it."""
    now = datetime.now(UTC)
    owner.execute(
        "UPDATE muniment_internal.item SET update_time = %s, expire_time = %s WHERE name = ANY(%s)",
        [now - timedelta(hours=1), now - timedelta(seconds=1), ids],
    )
