"""MemoryService, but for searches."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS, PUBLIC
from tests.proof.golden.stage import Actor, Stage


def memories(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    for session in sessions.values():
        _one(session)
    _shadows(stage, sessions)
    for session in sessions.values():
        _broken_rules(session)
    _odd_texts(sessions[PUBLIC])
    _lists(stage, sessions)
    _expiry(stage, sessions)
    _deletes(stage, sessions)


def _one(session: Actor) -> None:
    own = f"own-{session.level}"
    saved = session.save_memory(key=own, content="one", tags=["b", "a", "b "]).memory
    session.get_memory(key=own)
    newer = session.save_memory(key=own, content="two", etag=saved.etag).memory
    session.save_memory(key=own, content="three", etag=saved.etag)
    session.save_memory(key="none yet", content="x", etag=saved.etag)
    session.delete_memory(key=own, etag=saved.etag)
    session.delete_memory(key=own, etag=newer.etag)
    session.get_memory(key=own)
    session.delete_memory(key=own)
    session.save_memory(key=own, content="again")
    session.get_memory(key="never")


def _shadows(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("One key at every level, from above to below and back")
    for level in sorted(LEVELS, reverse=True):
        sessions[level].save_memory(key="plan", content=f"plan of {LEVELS[level]}", tags=[f"t{level}", "t"])
        for session in sessions.values():
            session.get_memory(key="plan")
    below = sessions[PUBLIC].get_memory(key="plan").memory
    for level, session in sessions.items():
        session.save_memory(key="plan", content=f"new of {LEVELS[level]}", etag=below.etag)
    sessions[PUBLIC].save_memory(key="low", content="of PUBLIC")
    for session in sessions.values():
        session.delete_memory(key="low", etag=sessions[PUBLIC].get_memory(key="low").memory.etag)
        sessions[PUBLIC].save_memory(key="low", content="of PUBLIC")


def _broken_rules(session: Actor) -> None:
    session.stage.say(f"What breaks rules, at {LEVELS[session.level]}")
    session.save_memory()
    session.save_memory(key="k", content="x", etag="no etag")
    session.save_memory(key="k", content="x", tags=[""])
    session.save_memory(key="k", content="x", expire_time={"seconds": 1})
    session.get_memory()
    session.delete_memory()
    session.delete_memory(key="k", etag="?")
    session.list_memories(page_size=-1)
    session.list_memories(page_token="no token")


def _odd_texts(session: Actor) -> None:
    session.stage.say("Odd texts")
    refused = ("k" * 257, "é" * 2049, "a\0", "a\nb", "\u202e", " ")
    for key in (*refused, " spaces ", "e\u0301", "é", "நினைவு", "👩\u200d💻"):
        session.save_memory(key=key, content="x")
        session.get_memory(key=key)
    for content in ("x" * 131072, "x" * 131073, "é" * 65537, "a\0", " ", "\r\n\u2028\x85", "\U0010ffff"):
        session.save_memory(key="content", content=content)
        session.get_memory(key="content")
    for tags in (["x" * 65], ["a\0"], [f"t{number}" for number in range(33)], ["t"] * 257, ["é", "e\u0301"], [" "]):
        session.save_memory(key="tags", content="x", tags=tags)
    session.save_memory(key="k" * 4097, content="x" * 131073, tags=["x" * 1025], etag="x" * 65)


def _lists(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("Lists")
    for session in sessions.values():
        pages = session.pages("ListMemories", page_size=3)
        session.list_memories(tag="t")
        session.pages("ListMemories", tag="t", page_size=1)
        session.list_memories(tag="never")
        session.list_memories(tag="t", page_token=pages[0].next_page_token)
        session.list_memories(page_size=300)
        session.list_memories(page_token=pages[0].next_page_token + "A")
        stage.open(session.level).list_memories(page_token=pages[0].next_page_token)
        session.list_notes(page_token=pages[0].next_page_token)
        session.list_memories(tag="x" * 65)


def _expiry(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("What is forgotten in time")
    soon = {"seconds": int(stage.time.timestamp()) + 60, "nanos": 123_456_000}
    for session in sessions.values():
        session.save_memory(key="soon", content=f"soon {session.level}", expire_time=soon)
    sessions[PUBLIC].save_memory(key="soon", content="for good")
    for session in sessions.values():
        session.get_memory(key="soon")
        session.save_memory(key="soon", content="x", expire_time={"seconds": soon["seconds"], "nanos": -1})
        session.save_memory(key="soon", content="x", expire_time={"seconds": 10**13})
    stage.wait(minutes=2)
    for session in sessions.values():
        session.get_memory(key="soon")
        session.list_memories(page_size=250)
        session.search_memories(query="soon good")


def _deletes(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("What a deleted version reveals")
    for level in sorted(LEVELS, reverse=True):
        for session in sessions.values():
            session.delete_memory(key="plan")
            session.get_memory(key="plan")
        sessions[level].save_memory(key="plan", content="back")
