"""Every RPC, called by whoever may not, and with what is no request."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS, METHODS, PUBLIC, callers_of
from tests.proof.golden.stage import Actor, Stage


def doors(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    closed = stage.open(PUBLIC)
    closed.list_memories()
    closed.close_session()
    for rpc in METHODS:
        _door(stage, rpc, sessions, closed)
    _credentials(stage, sessions[PUBLIC])
    for actor in (*sessions.values(), *map(stage.host, LEVELS), closed, stage.anonymous("without")):
        actor.send("/muniment.v1.MemoryService/Teleport", b"")
        actor.send("/muniment.v1.NoService/SaveMemory", b"")
    sessions[PUBLIC].send("SaveMemory", b"\x0a\x01k\x12" + b"\x80\x80\x40" + b"x" * 1024 * 1024)


def _door(stage: Stage, rpc: str, sessions: dict[int, Actor], closed: Actor) -> None:
    stage.say(rpc)
    stage.anonymous("without").call(rpc)
    closed.call(rpc)
    everyone = [*sessions.values(), *map(stage.host, LEVELS)]
    for actor in everyone:
        if actor.kind not in callers_of(rpc):
            actor.call(rpc)
    for actor in everyone:
        if actor.kind in callers_of(rpc):
            actor.send(rpc, b"\xff\xff")
            if rpc not in ("CloseSession", "CreateAgent"):
                actor.call(rpc)


def _credentials(stage: Stage, good: Actor) -> None:
    stage.say("Credentials")
    (header,) = good.metadata
    token = header[1].removeprefix("Bearer ")
    forms = {
        "empty": [("authorization", "Bearer ")],
        "unknown": [("authorization", f"Bearer {token[:-2]}AA")],
        "cut short": [("authorization", f"Bearer {token[:-1]}")],
        "as a host's": [("authorization", f"Bearer {token.replace('mun_s', 'mun_h')}")],
        "twice": [header, header],
        "of two callers": [header, *stage.host().metadata],
        "lower case": [("authorization", f"bearer {token}")],
        "another scheme": [("authorization", f"Basic {token}")],
        "another header": [("x-authorization", header[1])],
        "good, with more": [header, ("x-more", "y")],
    }
    for name, metadata in forms.items():
        stage.anonymous(name, *metadata).list_memories()
