"""Hosts that share blocks at once: one declares, none deadlocks, and none gets INTERNAL."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from tests.proof.races.crew import Crew, code_of, deadlocks, opened
from tests.support.invariants import broken
from tests.support.services import Service

_HOSTS = 8
_LINKS = """
SELECT owner.agent_id AS owner, consumer.agent_id AS consumer
  FROM vault.block_link
       JOIN vault.agent AS owner ON (owner.tenant, owner.agent) = (block_link.tenant, block_link.owner)
       JOIN vault.agent AS consumer ON (consumer.tenant, consumer.agent) = (block_link.tenant, block_link.consumer)
 WHERE owner.agent_id LIKE %s
"""
_DECLARED = """
SELECT count(*) FROM vault.shared_block JOIN vault.agent ON (agent.tenant, agent.agent) = (shared_block.tenant, owner)
 WHERE agent.agent_id LIKE %s
"""
_AUDITED = """
SELECT audit.method, count(*)
  FROM muniment_control.audit JOIN vault.agent USING (tenant, agent)
 WHERE agent.agent_id LIKE %s AND audit.method <> 'CreateAgent' AND audit.method <> 'OpenSession'
 GROUP BY 1
"""


@pytest.fixture
def rounds(runs: int) -> int:
    """How often the hosts meet."""
    return max(4, runs // 50)


def _audited(owner: psycopg.Connection[Any], agent: str) -> dict[str, int]:
    return dict(owner.execute(_AUDITED, [f"{agent}%"]).fetchall())


@pytest.mark.parametrize("content", ["text", ""], ids=["with content", "without"])
def test_one_of_eight_concurrent_declarations_succeeds(
    content: str, rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    arena.agent(agent)
    create = partial(arena.host().create_shared_block, owner_agent_id=agent, content=content)
    answers: Counter[str] = Counter()
    for number in range(rounds):
        found = crew.together(*(partial(code_of, create, label=f"b{number}") for _ in range(_HOSTS)))
        answers.update(found)
        assert found.count("OK") == 1

    assert answers == {"OK": rounds, "ALREADY_EXISTS": (_HOSTS - 1) * rounds}
    assert _audited(owner, agent) == {"CreateSharedBlock": rounds}
    assert owner.execute(_DECLARED, [agent]).fetchone() == (rounds,)
    assert broken(owner) == []
    print(f"declared by {_HOSTS} at once: {dict(answers)}")


@pytest.mark.parametrize("content", ["text", ""], ids=["with content", "without"])
def test_a_declaration_meets_the_first_save_of_its_block(
    content: str, rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """With content it is refused when the save was first; either way the save stands."""
    arena.agent(agent)
    session = opened(arena, agent, Classification.PUBLIC)
    answers: Counter[str] = Counter()
    for number in range(rounds):
        label = f"b{number}"
        create = partial(arena.host().create_shared_block, owner_agent_id=agent, label=label, content=content)
        found = crew.together(
            partial(code_of, create), partial(code_of, session.update_block, label=label, content=f"saved {number}")
        )
        answers[" ".join(found)] += 1
        assert session.get_block(label=label).block.content == f"saved {number}"

    assert set(answers) <= {"OK OK", "ALREADY_EXISTS OK"} if content else set(answers) == {"OK OK"}
    assert broken(owner) == []
    print(f"declared against saved: {dict(answers)}")


def test_agents_that_attach_to_each_other_at_once_do_not_deadlock(
    rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    one, other = arena.agent(f"{agent}-1"), arena.agent(f"{agent}-2")
    host = arena.host()
    for each in (one, other):
        host.create_shared_block(owner_agent_id=each, label="plan", content=each)
    before = deadlocks(owner)
    for _ in range(rounds):
        pairs = [(one, other), (other, one)] * (_HOSTS // 2)
        calls = [partial(code_of, host.attach_block, owner_agent_id=a, label="plan", agent_id=b) for a, b in pairs]
        assert crew.together(*calls) == ["OK"] * _HOSTS
        links = {tuple(row) for row in owner.execute(_LINKS, [f"{agent}%"]).fetchall()}
        assert links == {(one, other), (other, one)}
        calls = [partial(code_of, host.detach_block, owner_agent_id=a, label="plan", agent_id=b) for a, b in pairs]
        assert sorted(crew.together(*calls)) == sorted(["OK"] * 2 + ["NOT_FOUND"] * (_HOSTS - 2))

    assert _audited(owner, agent) == {
        "CreateSharedBlock": 2, "AttachBlock": 2 * rounds, "DetachBlock": 2 * rounds,
    }  # fmt: skip
    assert deadlocks(owner) == before
    print(f"attached to each other by {_HOSTS} at once: {rounds} rounds, 0 deadlocks")


def test_attaching_meets_the_end_of_the_declaration(
    rounds: int, arena: Service, crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """It comes before it or after it."""
    one = arena.agent(f"{agent}-1")
    others = [arena.agent(f"{agent}-{number}") for number in range(2, 6)]
    host = arena.host()
    answers: Counter[str] = Counter()
    for number in range(rounds):
        label = f"b{number}"
        host.create_shared_block(owner_agent_id=one, label=label, content="")
        calls = [partial(code_of, host.attach_block, owner_agent_id=one, label=label, agent_id=each) for each in others]
        ended, *attached = crew.together(
            partial(code_of, host.delete_shared_block, owner_agent_id=one, label=label), *calls
        )
        assert ended == "OK"
        answers.update(attached)

    assert set(answers) <= {"OK", "NOT_FOUND"}
    assert owner.execute(_DECLARED, [f"{agent}%"]).fetchone() == (0,)
    assert owner.execute(_LINKS, [f"{agent}%"]).fetchall() == []
    assert _audited(owner, agent).get("AttachBlock", 0) == answers["OK"]
    print(f"attached against the end of the declaration: {dict(answers)}")
