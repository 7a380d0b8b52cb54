"""BlockService for sessions."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS, PUBLIC
from tests.proof.golden.stage import Actor, Stage


def blocks(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice", initial_blocks=[{"label": "first", "content": "one\ntwo\nthree"}])
    sessions = stage.levels()
    for session in sessions.values():
        _one(session)
    _shadows(stage, sessions)
    for session in sessions.values():
        _edits(session)
        _broken_rules(session)
    _labels(sessions[PUBLIC])
    for session in sessions.values():
        _lists(stage, session)


def _one(session: Actor) -> None:
    session.get_block(label="first")
    label = f"own-{session.level}"
    block = session.update_block(label=label, content="one").block
    session.get_block(label=label)
    session.get_block(label=label, owner_agent_id="alice")
    session.get_block(label=label, owner_agent_id="bob")
    newer = session.update_block(label=label, content="two", etag=block.etag).block
    session.update_block(label=label, content="three", etag=block.etag)
    session.edit_block(label=label, append={"content": "\nthree"}, etag=block.etag)
    session.delete_block(label=label, etag=block.etag)
    session.delete_block(label=label, etag=newer.etag)
    session.get_block(label=label)
    session.delete_block(label=label)
    session.edit_block(label=label, append={"content": "x"})
    session.update_block(label=label, content="x", etag=block.etag)
    session.update_block(label=label)


def _shadows(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("One label at every level, from above to below and back")
    for level in sorted(LEVELS, reverse=True):
        sessions[level].update_block(label="plan", content=f"plan of {LEVELS[level]}")
        for session in sessions.values():
            session.get_block(label="plan")
    for session in sessions.values():
        session.delete_block(label="first")
        session.update_block(label="first", content=f"one\ntwo\nthree of {session.level}")
    for level in sorted(LEVELS, reverse=True):
        for session in sessions.values():
            session.delete_block(label="plan")
        sessions[level].update_block(label="plan", content="back")


def _edits(session: Actor) -> None:
    session.stage.say(f"Edits at {LEVELS[session.level]}")
    session.edit_block(label="first", append={"content": "\nfour"})
    session.edit_block(label="first", insert={"line": 0, "content": "zero"})
    session.edit_block(label="first", insert={"line": 2, "content": "é\r\n"})
    session.edit_block(label="first", insert={"line": 99, "content": "never"})
    session.edit_block(label="first", replace={"old": "zero", "new": "null"})
    session.edit_block(label="first", replace={"old": "null\n", "new": ""})
    session.edit_block(label="first", replace={"old": "never", "new": "x"})
    session.edit_block(label="first", replace={"old": "o", "new": "0"})
    session.edit_block(label="first", append={"content": "x" * 65_530})
    session.edit_block(label="never", append={"content": "x"})
    session.edit_block(label="plan", append={"content": " more"})
    session.get_block(label="first")


def _broken_rules(session: Actor) -> None:
    session.stage.say(f"What breaks rules, at {LEVELS[session.level]}")
    session.get_block()
    session.get_block(label="a b", owner_agent_id="no id")
    session.update_block(label="plan", content="é" * 32769, etag="no etag")
    session.update_block(label="plan", content="a\0")
    session.update_block(label="plan", content="x", etag="no etag")
    session.edit_block(label="plan")
    session.edit_block(label="plan", append={})
    session.edit_block(label="plan", insert={"line": -1, "content": "\0"})
    session.edit_block(label="plan", insert={"line": 0, "content": "\0"})
    session.edit_block(label="plan", replace={"old": "", "new": "x" * 65537})
    session.edit_block(label="plan", append={"content": "x"}, etag="?")
    session.delete_block()
    session.delete_block(label="plan", etag="?")
    session.list_blocks(page_size=-1)
    session.list_blocks(page_token="no token")


def _labels(session: Actor) -> None:
    session.stage.say("Labels")
    refused = ("a b", ".a", "#a", "a\n", "😀", "a" * 65, "a" * 1025)
    for label in (*refused, "e\u0301", "é", "க\u0bc6\u0bbe", "A.b-c_d:e", "9"):
        session.update_block(label=label, content="x")
        session.get_block(label=label)


def _lists(stage: Stage, session: Actor) -> None:
    pages = session.pages("ListBlocks", page_size=3)
    session.list_blocks()
    session.list_blocks(page_size=251)
    session.list_blocks(page_token=pages[0].next_page_token[::-1])
    stage.open(session.level).list_blocks(page_token=pages[0].next_page_token)
