"""Writers who fill a tier of notes at once: what fits is kept, and nothing beyond it."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import grpc
import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races.crew import Crew, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.labels import untrusted
from tests.support.services import Caller, Outcome, Service, reason_of

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_WRITERS = 8
_NOTE = 100
_LIMIT = 2200
_FIT = 21
"""Notes of 100 characters, with three between each two of them, in 2,200."""
_TRIES = 4
"""Of each writer; together they are more than fit."""
_LISTS = 12
_WRITE_LOCK = "shelf.agent = (SELECT session.agent FROM session) FOR NO KEY UPDATE"
_OUTCOMES = """
SELECT audit.method, audit.outcome, count(*)
  FROM {level}.audit JOIN vault.agent USING (tenant, agent)
 WHERE agent.agent_id LIKE %s
 GROUP BY 1, 2
"""
_USED = """
SELECT agent.agent_id, sum(length(item.content)) + 3 * (count(*) - 1) AS used, count(*) AS notes
  FROM {level}.item JOIN vault.agent USING (tenant, agent)
 WHERE agent.agent_id LIKE %s AND item.kind = 2 AND item.delete_time IS NULL
 GROUP BY 1
"""


@pytest.fixture(autouse=True)
def sound(owner: psycopg.Connection[Any]) -> Iterator[None]:
    """After each race the ledgers hold, and effects are audit rows."""
    yield
    assert broken(owner) == []


@pytest.fixture
def rounds(runs: int) -> int:
    """How many agents' tiers are filled."""
    return max(4, runs // 50)


class Fill:
    """Eight writers add notes to a new agent until several are refused."""

    def __init__(self, arena: Service, crew: Crew, agent: str, *, one_session: bool) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = agent
        self._one_session = one_session
        self.codes: Counter[str] = Counter()
        self.kept: list[int] = []
        """How many notes there are after each round."""

    def run(self, number: int) -> None:
        """One round."""
        agent_id = f"{self._agent}-{number}"
        self._arena.host().create_agent(agent_id=agent_id)
        count = 1 if self._one_session else _WRITERS
        sessions = [opened(self._arena, agent_id, INTERNAL) for _ in range(count)]
        answers = self._crew.together(*(partial(self._add, sessions[i % count], i) for i in range(_WRITERS)))
        self.codes.update(code for found in answers for code in found)
        self.kept.append(len(sessions[0].list_notes(page_size=250).notes))

    def _add(self, session: Caller, i: int) -> list[str]:
        return [_code(session.add_note, content=f"{i}.{n} ".ljust(_NOTE, "x")) for n in range(_TRIES)]

    def over(self) -> int:
        """Rounds after which there were more notes than fit."""
        return sum(notes > _FIT for notes in self.kept)


@pytest.mark.parametrize("one_session", [False, True], ids=["8 sessions", "one session"])
def test_exactly_as_many_notes_are_kept_as_fit(
    one_session: bool, rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    race = Fill(arena, crew, agent, one_session=one_session)
    for number in range(rounds):
        race.run(number)

    effects, refused = _FIT * rounds, (_WRITERS * _TRIES - _FIT) * rounds
    assert Counter(race.kept) == {_FIT: rounds}
    assert race.codes == {"OK": effects, "FAILED_PRECONDITION BUDGET_EXCEEDED": refused}
    assert _outcomes(owner, agent, INTERNAL) == {
        ("AddNote", "OK"): effects,
        ("AddNote", "BUDGET_EXCEEDED"): refused,
    }
    print(f"notes to the budget, {one_session=}: {rounds} rounds, {_FIT} kept each time, {dict(race.codes)}")


@pytest.mark.proof
def test_without_the_write_lock_the_budget_would_be_exceeded(
    arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    race = Fill(arena, crew, agent, one_session=False)
    with spoiled(SESSION_QUERIES, "lock_writes", _WRITE_LOCK, _WRITE_LOCK.removesuffix(" FOR NO KEY UPDATE")):
        runs, over = runs_until(race.over, race.run, most=40, batch=1)

    assert over > 0
    assert max(used for used, _ in _used(owner, agent, INTERNAL).values()) > _LIMIT
    print(f"notes to the budget, mutant without the write lock: overspent in {over} of {runs} rounds")


class Seen(NamedTuple):
    """What one list of edits was answered."""

    level: Classification
    only_adds: bool
    effects: int
    used: int


class Lists:
    """Writers at two levels send random lists of edits on few notes, so that they shadow one another."""

    def __init__(self, arena: Service, crew: Crew, agent: str) -> None:
        self._arena = arena
        self._crew = crew
        self._agent = agent
        self._dice = random.Random(agent)
        self.codes: Counter[str] = Counter()
        self.accepted: list[Seen] = []

    def run(self, number: int) -> None:
        """One round, with a new agent."""
        agent_id = f"{self._agent}-{number}"
        self._arena.host().create_agent(agent_id=agent_id)
        ids = [str(uuid.UUID(int=self._dice.getrandbits(128), version=4)) for _ in range(40)]
        levels = [PUBLIC, INTERNAL] * (_WRITERS // 2)
        sessions = [opened(self._arena, agent_id, level) for level in levels]
        self._crew.together(
            *(
                partial(self._write, session, level, ids, random.Random(f"{agent_id} {i}"))
                for i, (session, level) in enumerate(zip(sessions, levels, strict=True))
            )
        )

    def _write(self, session: Caller, level: Classification, ids: list[str], dice: random.Random) -> None:
        for _ in range(_LISTS):
            kinds = dice.choices(("add", "update", "delete"), weights=(8, 2, 1), k=dice.randrange(1, 4))
            try:
                answer = session.edit_notes(edits=[_edit(kind, dice.choice(ids), dice) for kind in kinds])
            except grpc.RpcError as error:
                self.codes[error.code().name] += 1
                continue
            self.codes["OK"] += 1
            self.accepted.append(Seen(level, set(kinds) == {"add"}, len(kinds), answer.usage.used_chars))


def _edit(kind: str, note_id: str, dice: random.Random) -> dict[str, Any]:
    if kind == "delete":
        return {"delete": {"note_id": note_id}}
    content = f"{dice.random()} ".ljust(dice.randrange(60, 250), "x")
    return {kind: {"note_id": note_id, "content": content}}


def test_lists_of_edits_at_two_levels_never_exceed_the_budget(
    rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """A low view never. A high one may, by what is written below; but not by what it adds itself."""
    race = Lists(arena, crew, agent)
    for number in range(rounds):
        race.run(number)

    used = _used(owner, agent, PUBLIC)
    assert set(race.codes) <= {"OK", "FAILED_PRECONDITION", "NOT_FOUND", "ALREADY_EXISTS"}
    assert race.codes["FAILED_PRECONDITION"] > 0
    assert [each for each in race.accepted if each.used > _LIMIT and (each.level is PUBLIC or each.only_adds)] == []
    assert {agent_id: spent for agent_id, (spent, _) in used.items() if spent > _LIMIT} == {}
    assert max(spent for spent, _ in used.values()) > _LIMIT * 0.9  # the budget was met
    written = sum(_outcomes(owner, agent, level)["EditNotes", "OK"] for level in (PUBLIC, INTERNAL))
    assert 0 < written <= sum(each.effects for each in race.accepted)  # what is there already is not written again
    print(f"lists of edits: {rounds} rounds of {_WRITERS} x {_LISTS}, {dict(race.codes)}, {written} effects, 0 over")


def _outcomes(owner: psycopg.Connection[Any], agent: str, level: Classification) -> Counter[tuple[str, str]]:
    rows = owner.execute(_OUTCOMES.format(level=untrusted(level).role).encode(), [f"{agent}-%"]).fetchall()
    return Counter({(method, outcome): count for method, outcome, count in rows})


def _used(owner: psycopg.Connection[Any], agent: str, level: Classification) -> dict[str, tuple[int, int]]:
    """Of each agent, the characters and the number of its notes at one level."""
    rows = owner.execute(_USED.format(level=untrusted(level).role).encode(), [f"{agent}-%"]).fetchall()
    return {agent_id: (int(used), notes) for agent_id, used, notes in rows}


def _code(call: Any, **fields: Any) -> str:
    """The status of a call, with the reason of a refusal."""
    try:
        call(**fields)
    except grpc.RpcError as error:
        trailers: Any = tuple(error.trailing_metadata() or ())
        return f"{error.code().name} {reason_of(Outcome(error.code(), '', trailers, b''))}"
    return "OK"
