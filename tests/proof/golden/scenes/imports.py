"""ImportPassages."""

from __future__ import annotations

import uuid
from typing import Any

from muniment.v1 import passage_service_pb2
from tests.proof.golden.contract import CONFIDENTIAL, INTERNAL, LEVELS
from tests.proof.golden.stage import Actor, Stage


def imports(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    for session in stage.levels().values():
        _stored(session)
        _refused(session)
        session.list_passages(page_size=12)
    stage.host().import_passages(_passage("x"))


def _passage(content: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    """One message. Its passage has an id if it has a *number*."""
    passage_id = str(uuid.UUID(int=number)) if number else ""
    return {"passage": {"content": content, "passage_id": passage_id, **fields}}


def _stored(session: Actor) -> None:
    session.stage.say(f"Streams that are stored, at {LEVELS[session.level]}")
    own = session.level * 1000
    session.import_passages()
    session.import_passages(_passage("one", own + 1), _passage("two", own + 2), _passage("one", own + 1))
    session.import_passages(_passage("one", own + 1, tags=["other"]), _passage("three", thread="t", author="Ann"))
    if session.level == CONFIDENTIAL:
        session.import_passages(*(_passage(f"line {number}") for number in range(105)))


def _refused(session: Actor) -> None:
    session.stage.say(f"Streams that are refused, at {LEVELS[session.level]}")
    own = session.level * 1000 + 500
    session.import_passages({})
    session.import_passages(_passage(""))
    session.import_passages(_passage("good", own + 1), _passage("a\0"))
    session.import_passages(_passage("good", own + 1), _passage("bad", own + 1))
    session.import_passages(_passage("next", own + 2), {"passage": {"content": "x", "passage_id": "no id"}})
    session.import_passages(_passage("x", thread="a\0", tags=[""], author="x" * 257))
    session.import_passages(_passage("next", own + 3), _passage("x", expire_time={"seconds": 1}))
    session.import_passages(_passage("x", event_time={"seconds": 10**13}))
    if session.level == INTERNAL:
        session.import_passages(*(_passage(f"many {number}") for number in range(101)), _passage(""))
    good = passage_service_pb2.ImportPassagesRequest(**_passage("as bytes", own + 4))
    session.send("ImportPassages", good.SerializeToString(), b"\xff\xff")
