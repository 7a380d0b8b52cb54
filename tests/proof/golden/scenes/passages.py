"""PassageService, but for streams and searches."""

from __future__ import annotations

import uuid

from tests.proof.golden.contract import LEVELS, PUBLIC
from tests.proof.golden.stage import Actor, Stage

A, B = (str(uuid.UUID(int=number)) for number in (1, 2))
ANY = 2


def passages(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    for session in sessions.values():
        _one(session)
    _shadows(stage, sessions)
    for session in sessions.values():
        _broken_rules(session)
    _odd_texts(sessions[PUBLIC])
    for session in sessions.values():
        _lists(stage, session)
    _expiry(stage, sessions)


def _one(session: Actor) -> None:
    event = {"seconds": 1_700_000_000 + session.level, "nanos": 123_456_789}
    stored = session.store_passage(
        content=f"Ann said {session.level}", tags=["b", "a", "b"], thread="t 1", author='Ann "Ä"', event_time=event
    ).passage
    session.get_passage(passage_id=stored.passage_id)
    session.store_passage(content=f"Ann said {session.level}", passage_id=stored.passage_id)
    session.store_passage(content="another text", passage_id=stored.passage_id)
    session.delete_passage(passage_id=stored.passage_id)
    session.get_passage(passage_id=stored.passage_id)
    session.delete_passage(passage_id=stored.passage_id)
    session.store_passage(content="again", passage_id=stored.passage_id)
    session.store_passage(content=f"kept {session.level}")


def _shadows(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("One id at every level, from above to below and back")
    for level in sorted(LEVELS, reverse=True):
        sessions[level].store_passage(content=f"of {LEVELS[level]}", passage_id=A, tags=["shadow"])
        for session in sessions.values():
            session.get_passage(passage_id=A)
    for session in sessions.values():
        session.store_passage(content="of PUBLIC", passage_id=A)
        session.store_passage(content="low", passage_id=B)
        session.delete_passage(passage_id=B)
    for session in sessions.values():
        sessions[PUBLIC].store_passage(content="low", passage_id=B)
        session.delete_passage(passage_id=B)
    for level in sorted(LEVELS, reverse=True):
        for session in sessions.values():
            session.delete_passage(passage_id=A)
        sessions[level].store_passage(content="back", passage_id=A)


def _broken_rules(session: Actor) -> None:
    session.stage.say(f"What breaks rules, at {LEVELS[session.level]}")
    session.store_passage()
    session.store_passage(content="x", passage_id="no id", tags=[""], author="x" * 257)
    session.store_passage(content="x", expire_time={"seconds": 1})
    session.store_passage(content="x", event_time={"seconds": 10**13})
    session.get_passage()
    session.get_passage(passage_id=str(uuid.UUID(int=9)))
    session.delete_passage()
    session.list_passages(page_size=-1, tag_match=3)
    session.list_passages(page_token="no token")
    session.list_passages(start_time={"seconds": 2, "nanos": -1})


def _odd_texts(session: Actor) -> None:
    session.stage.say("Odd texts")
    for content in ("é" * 131_072, "x" * 262_145, "a\0", " ", "\r\n\u2028\x85", "e\u0301"):
        session.store_passage(content=content)
    for fields in (
        {"thread": "a\0"}, {"thread": "x" * 257}, {"thread": " t "}, {"thread": "e\u0301"}, {"author": "a\0"},
        {"author": " "}, {"tags": [" x "]}, {"tags": ["x" * 65]}, {"tags": [f"t{number}" for number in range(33)]},
        {"event_time": {"seconds": -62_135_596_800}}, {"event_time": {"seconds": 253_402_300_799}},
    ):  # fmt: skip
        session.store_passage(content="odd", **fields)


def _lists(stage: Stage, session: Actor) -> None:
    stage.say(f"Lists at {LEVELS[session.level]}")
    for number in range(4):
        session.store_passage(
            content=f"turn {number} of {session.level}",
            thread=f"thread {number % 2}",
            tags=[f"n{number % 2}", f"m{number % 3}"],
            event_time={"seconds": 1_800_000_000 + number},
        )
    token = session.pages("ListPassages", page_size=7)[0].next_page_token
    session.pages("ListPassages", thread="thread 1", page_size=3)
    session.list_passages(tags=["n0", "m0"])
    session.list_passages(tags=["n0", "m1"], tag_match=ANY)
    session.list_passages(start_time={"seconds": 1_800_000_001}, end_time={"seconds": 1_800_000_003})
    session.list_passages(start_time={"seconds": 2}, end_time={"seconds": 1})
    session.list_passages(tags=["never"], thread="never")
    session.list_passages(thread="thread 1", page_token=token)
    stage.open(session.level).list_passages(page_token=token)
    session.list_passages(page_token=token[:-2])


def _expiry(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("What is forgotten in time")
    soon = {"seconds": int(stage.time.timestamp()) + 60}
    for session in sessions.values():
        session.store_passage(content=f"soon {session.level}", passage_id=B, expire_time=soon, tags=["soon"])
    stage.wait(minutes=2)
    for session in sessions.values():
        session.get_passage(passage_id=B)
        session.list_passages(tags=["soon"])
        session.delete_passage(passage_id=B)
