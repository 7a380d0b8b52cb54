"""DeleteAgent against eight writers and a host that opens, raises and resets: nothing is left, no caller is stuck."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import psycopg
import pytest

from muniment_server.domain.classification import Classification, Label
from muniment_server.monitor.queries import HOST_QUERIES
from tests.proof.races.crew import Crew, code_of, deadlocks, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.erasing import erase_all
from tests.support.services import Caller, Service

_WRITERS = 8
_MAX_SAVES = 50
"""By then the agent is gone, and the session with it."""
_MAX_ROUNDS = 10
"""How many times as many rounds are run, at most, until a save is before a deletion. A busy machine may need them."""
_FIRST_BLOCKS = 3
_LEFT = """
SELECT 'conversation' AS what, count(*) FROM vault.conversation WHERE agent = ANY(%(agents)s)
 UNION ALL
SELECT 'session', count(*) FROM vault.session WHERE agent = ANY(%(agents)s)
 UNION ALL
SELECT 'agent', count(*) FROM vault.agent WHERE agent = ANY(%(agents)s)
 UNION ALL
SELECT 'shared_block', count(*) FROM vault.shared_block WHERE owner = ANY(%(agents)s)
 UNION ALL
SELECT 'block_link', count(*) FROM vault.block_link WHERE owner = ANY(%(agents)s) OR consumer = ANY(%(agents)s)
"""
_LEFT_AT = """
SELECT '{level}.item' AS what, count(*) FROM {level}.item WHERE agent = ANY(%(agents)s)
 UNION ALL
SELECT '{level}.revision', count(*) FROM {level}.revision WHERE agent = ANY(%(agents)s)
 UNION ALL
SELECT '{level}.shelf', count(*) FROM {level}.shelf WHERE agent = ANY(%(agents)s)
"""
_AUDITED = """
SELECT method || ' ' || outcome AS what, count(*) AS times
  FROM muniment_auditor.audit
 WHERE agent = ANY(%s)
 GROUP BY 1
"""


class Race:
    """An agent with a session for each writer: half of them at a level of their own, half in one conversation."""

    def __init__(
        self, arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str, *, deleters: int
    ) -> None:
        self._arena = arena
        self._crew = crew
        self._owner = owner
        self._name = agent
        self._deleters = deleters
        self._longest = 0.015
        self._dice = random.Random(agent)
        self.agents: list[int] = []
        self.answers: dict[str, int] = {}
        self.effects: Counter[str] = Counter()
        self.deletions: list[list[str]] = []
        self.shared: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """One round; the id of the agent is used again in the next."""
        self._arena.host().create_agent(agent_id=self._name)
        self._effect("CreateAgent")
        found = self._owner.execute("SELECT agent FROM vault.agent WHERE agent_id = %s", [self._name]).fetchone()
        self.agents.append(found.agent)  # type: ignore[union-attr]  # it was made just now
        alone = [self._open(level, "") for level in Classification]
        sessions = [*alone, *(self._open(Classification.INTERNAL, "shared") for _ in range(_WRITERS - len(alone)))]
        writers = [partial(self._write, session, i) for i, session in enumerate(sessions)]
        deleters = [self._delete] * self._deleters
        answers = self._crew.together(*deleters, partial(self._manage, sessions[0]), *writers)
        self.deletions.append(sorted(answers[: self._deleters]))

    def left(self) -> dict[str, int]:
        """Rows that still name one of the agents, once they have been erased."""
        erase_all(self._arena.database)
        questions = [_LEFT, *(_LEFT_AT.replace("{level}", label.role) for label in Label)]
        rows = self._owner.execute(" UNION ALL ".join(questions).encode(), {"agents": self.agents}).fetchall()
        return {row.what: row.count for row in rows if row.count}

    def audited(self) -> dict[str, int]:
        """How often each act on one of the agents was recorded."""
        return {row.what: row.times for row in self._owner.execute(_AUDITED.encode(), [self.agents]).fetchall()}

    def _open(self, level: Classification, conversation_id: str) -> Caller:
        session = opened(self._arena, self._name, level, conversation_id)
        self._effect("OpenSession")
        return session

    def _delete(self) -> str:
        self._crew.stagger(self._dice, longest=self._longest)
        code = code_of(self._arena.host().delete_agent, agent_id=self._name)
        if code == "OK":
            self._effect("DeleteAgent")
        return code

    def _write(self, session: Caller, i: int) -> None:
        for n in range(_MAX_SAVES):
            code = code_of(session.save_memory, key=f"{i} {n % 3}", content=f"{n}")
            self._answer("save", code)
            if code != "OK":
                return
            self._effect("SaveMemory")

    def _manage(self, session: Caller) -> None:
        """Open, raise and reset until the agent is gone."""
        host = self._arena.host()
        for _ in range(_MAX_SAVES):
            try:
                session = self._open(Classification.PUBLIC, "")
                host.raise_taint(session_id=session.session_id, taint=3)
                self._effect("RaiseTaint")
                host.reset_session(session_id=session.session_id)
                self._effect("ResetSession")
            except grpc.RpcError as error:
                self._answer("manage", str(error.code().name))
                return

    def _answer(self, who: str, code: str) -> None:
        self.answers[f"{who} {code}"] = self.answers.get(f"{who} {code}", 0) + 1

    def _effect(self, method: str) -> None:
        self.effects[method] += 1


class OfEveryKind(Race):
    """Writers of notes, blocks and passages, importers, and a host that shares blocks in both directions."""

    def __init__(
        self, arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str, *, deleters: int
    ) -> None:
        super().__init__(arena, crew, owner, agent, deleters=deleters)
        self._longest = 0.06
        self._partner = arena.agent(f"{agent}-partner")
        arena.host().create_shared_block(owner_agent_id=self._partner, label="plan", content="text")

    def _write(self, session: Caller, i: int) -> None:
        """The writers at one level and the writers in one conversation are of every kind."""
        acts: list[tuple[str, Callable[[], Any]]] = [
            ("AddNote", partial(session.add_note, content=str(i))),
            ("EditBlock", partial(session.edit_block, label="personality", append={"content": "."})),
            ("StorePassage", partial(session.store_passage, content="x")),
            ("ImportPassages", partial(session.import_passages, {"content": "x"})),
        ]
        method, act = acts[i % len(acts)]
        for n in range(_MAX_SAVES):
            if method == "AddNote":
                act = partial(session.add_note, content=f"{i}.{n}")
            code = code_of(act)
            self._answer(method, code)
            if code != "OK":
                return
            self._effect(method)

    def _manage(self, session: Caller) -> None:
        """Share until the agent is gone."""
        host = self._arena.host()
        one, other = self._name, self._partner
        for n in range(_MAX_SAVES):
            acts = [
                (
                    "CreateSharedBlock",
                    partial(host.create_shared_block, owner_agent_id=one, label=f"s{n}", content="."),
                ),
                ("AttachBlock", partial(host.attach_block, owner_agent_id=one, label=f"s{n}", agent_id=other)),
                ("AttachBlock", partial(host.attach_block, owner_agent_id=other, label="plan", agent_id=one)),
                ("DetachBlock", partial(host.detach_block, owner_agent_id=other, label="plan", agent_id=one)),
                ("AttachBlock", partial(host.attach_block, owner_agent_id=other, label="plan", agent_id=one)),
                ("DetachBlock", partial(host.detach_block, owner_agent_id=other, label="plan", agent_id=one)),
            ]
            for method, act in acts:
                code = code_of(act)
                self._answer("share", code)
                if code != "OK":
                    return
                self.shared[method] += 1


def test_nothing_is_left_of_an_agent_that_was_deleted_under_its_writers(
    runs: int, arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str
) -> None:
    """But its audit rows, one for each acknowledged effect."""
    rounds = max(5, runs // _WRITERS)
    race = Race(arena, crew, owner, agent, deleters=1)
    before = deadlocks(owner)
    for number in range(_MAX_ROUNDS * rounds):
        race.run(number)
        if number + 1 >= rounds and "save OK" in race.answers:
            break

    assert race.left() == {}
    assert set(race.answers) == {"save OK", "save UNAUTHENTICATED", "manage NOT_FOUND"}
    assert race.deletions == [["OK"]] * len(race.deletions)
    audited = race.audited()
    assert audited.pop("ResetSession CLOSED", 0) == race.effects["ResetSession"]
    assert audited.pop("CreateAgent OK") == race.effects.pop("CreateAgent") * (1 + _FIRST_BLOCKS)
    assert audited == {f"{method} OK": times for method, times in race.effects.items() if times}
    assert deadlocks(owner) == before
    print(f"delete against write: {rounds} rounds of {_WRITERS} writers, {race.answers}, 0 rows left, 0 deadlocks")


def test_of_two_concurrent_deletes_one_gets_not_found(
    runs: int, arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str
) -> None:
    race = Race(arena, crew, owner, agent, deleters=2)
    rounds = max(5, runs // _WRITERS // 4)
    for number in range(rounds):
        race.run(number)

    assert race.left() == {}
    assert race.deletions == [["NOT_FOUND", "OK"]] * rounds
    assert race.audited()["DeleteAgent OK"] == rounds
    print(f"two deletes: {rounds} rounds, {race.answers}, 0 rows left")


def test_of_no_kind_anything_is_left(
    runs: int, arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str
) -> None:
    """The only errors say that the session or the agent is gone."""
    race = OfEveryKind(arena, crew, owner, agent, deleters=1)
    before = deadlocks(owner)
    rounds = max(5, runs // _WRITERS // 5)
    for number in range(rounds):
        race.run(number)

    assert race.left() == {}
    assert race.deletions == [["OK"]] * rounds
    assert {answer.split()[1] for answer in race.answers} == {"OK", "UNAUTHENTICATED", "NOT_FOUND"}
    assert set(race.answers) <= {
        *(f"{method} {code}" for method in ("AddNote", "EditBlock", "StorePassage", "ImportPassages")
          for code in ("OK", "UNAUTHENTICATED")),
        "share OK", "share NOT_FOUND",
    }  # fmt: skip
    audited = race.audited()
    of_sharing = {"CreateSharedBlock", "AttachBlock", "DetachBlock"}
    assert {what: times for what, times in audited.items() if what.split()[0] not in of_sharing} == {
        **{f"{method} OK": times for method, times in race.effects.items() if times},
        "CreateAgent OK": rounds * (1 + _FIRST_BLOCKS),
    }
    assert audited.get("CreateSharedBlock OK", 0) == race.shared["CreateSharedBlock"]
    assert audited.get("AttachBlock OK", 0) <= race.shared["AttachBlock"]  # some are rows of the partner, who stays
    assert deadlocks(owner) == before
    print(f"delete against all kinds: {rounds} rounds, {race.answers}, {dict(race.shared)}, 0 rows left, 0 deadlocks")


@pytest.mark.proof
@pytest.mark.plain_postgres("on a cluster, the mutant leaves agents behind, which ends the race")
def test_a_deletion_that_does_not_wait_for_writers_would_show(
    arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str
) -> None:
    """Without the second step it deadlocks with them."""
    race = Race(arena, crew, owner, agent, deleters=1)
    before = deadlocks(owner)
    with spoiled(HOST_QUERIES, "lock_conversations", "FOR UPDATE", ""):
        runs, found = runs_until(lambda: deadlocks(owner) - before, race.run, most=100, batch=5)

    assert found > 0
    print(f"delete against write, mutant that locks no conversation: {found} deadlocks in {runs} rounds")


def test_two_agents_that_share_with_each_other_are_deleted_at_once(
    runs: int, arena: Service, crew: Crew, owner: psycopg.Connection[Any], agent: str
) -> None:
    """Their links are deleted in opposite orders: Postgres undoes one, which is run again."""
    host = arena.host()
    before = deadlocks(owner)
    rounds = max(5, runs // 40)
    for _ in range(rounds):
        pair = [arena.agent(f"{agent}-{number}") for number in range(2)]
        for one, other in (pair, pair[::-1]):
            for label in ("a", "b", "c"):
                host.create_shared_block(owner_agent_id=one, label=label, content="text")
            for label in ("a", "b", "c"):
                host.attach_block(owner_agent_id=one, label=label, agent_id=other)
        assert crew.together(*(partial(code_of, host.delete_agent, agent_id=each) for each in pair)) == ["OK", "OK"]

    links = owner.execute(
        "SELECT count(*) FROM vault.block_link AS link"
        " JOIN vault.agent ON (agent.tenant, agent.agent) = (link.tenant, link.owner) WHERE agent_id LIKE %s",
        [f"{agent}-%"],
    ).fetchone()
    assert links == (0,)
    print(f"two that share with each other, deleted at once: {rounds} rounds, {deadlocks(owner) - before} deadlocks")
