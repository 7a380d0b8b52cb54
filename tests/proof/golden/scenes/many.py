"""Many items at once, renames, and filters by key prefix."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS, PUBLIC
from tests.proof.golden.stage import Actor, Stage


def many(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    for session in sessions.values():
        _saves(session)
    for session in sessions.values():
        _broken_rules(session)
    _renames(stage, sessions)
    for session in sessions.values():
        _prefixes(stage, session)
    _deletes(stage, sessions)


def _saves(session: Actor) -> None:
    session.stage.say(f"Saved in one transaction, at {LEVELS[session.level]}")
    own = f"own-{session.level}"
    given = [{"key": key, "content": f"{key} of {session.level}", "tags": ["t"]} for key in (own, "b", "a")]
    stale = session.save_memories(memories=given).memories[0].etag
    session.save_memories(memories=given)
    session.save_memory(key=own, content="newer")
    session.save_memories(
        memories=[{"key": "never", "content": "x"}, {"key": own, "content": "x", "etag": stale}, *given[1:]]
    )
    session.save_memories(memories=[{"key": "never", "content": "x", "expire_time": {"seconds": 1}}, given[1]])
    session.get_memory(key="never")


def _broken_rules(session: Actor) -> None:
    session.stage.say(f"What breaks rules, at {LEVELS[session.level]}")
    one = {"key": "k", "content": "x"}
    for memories in ([], [one] * 101, [one, one], [one, {"key": " k"}], [{**one, "etag": "?", "tags": [""]}]):
        session.save_memories(memories=memories)
    session.rename_memory()
    session.rename_memory(key="k", new_key="k")
    session.rename_memory(key="k ", new_key="k\n", etag="?")
    session.delete_memories()
    session.delete_memories(tag="x" * 65)
    session.delete_passages()
    session.delete_passages(tag="t", thread="t")
    session.list_memories(key_prefix=" k")
    session.search_memories(query="x", key_prefix="k\n")


def _renames(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("Renames, from below to above")
    for session in sessions.values():
        session.rename_memory(key="a", new_key="b")
        session.rename_memory(key="never", new_key="b")
        session.rename_memory(key=f"own-{PUBLIC}", new_key="mine")
        etag = session.save_memory(key="a", content=f"newer of {session.level}").memory.etag
        renamed = session.rename_memory(key="a", new_key=f"a of {session.level}", etag=etag).memory
        session.rename_memory(key=renamed.key, new_key="c", etag=etag)
        session.get_memory(key="a")
        session.get_memory(key=renamed.key)


def _prefixes(stage: Stage, session: Actor) -> None:
    stage.say(f"Keys by their beginning, at {LEVELS[session.level]}")
    token = session.pages("ListMemories", key_prefix="a", page_size=1)[0].next_page_token
    session.list_memories(key_prefix="own-", tag="t")
    session.list_memories(key_prefix="a of ")
    session.list_memories(key_prefix="never")
    session.list_memories(key_prefix="o", page_token=token or "none")
    session.search_memories(query="of", key_prefix="b")


def _deletes(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("Deleted by tag and by thread, from above to below")
    for session in reversed(sessions.values()):
        session.delete_memories(tag="t")
        session.delete_memories(tag="t")
        session.list_memories()
        session.store_passage(content=f"turn of {session.level}", thread="chat", tags=["p"])
        session.store_passage(content=f"page of {session.level}", tags=["p"])
    for session in reversed(sessions.values()):
        session.delete_passages(thread="chat")
        session.delete_passages(tag="p")
        session.delete_passages(tag="p")
        session.list_passages()
