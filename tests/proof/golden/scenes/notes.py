"""NoteService, but for searches."""

from __future__ import annotations

import uuid
from typing import Any

from tests.proof.golden.contract import LEVELS, PUBLIC, RESTRICTED
from tests.proof.golden.stage import Actor, Stage

MEMORY, USER = 1, 2
A, B, C = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


def notes(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    for session in sessions.values():
        _one(session)
    _shadows(stage, sessions)
    for session in sessions.values():
        _broken_rules(session)
    for level in LEVELS:
        _edits(stage, level)
        _budget(stage, level)
        _tiers(stage, level)
    _lists(stage, sessions)


def add(content: str, note_id: str = "") -> dict[str, Any]:
    return {"add": {"content": content, "note_id": note_id}}


def update(note_id: str, content: str) -> dict[str, Any]:
    return {"update": {"note_id": note_id, "content": content}}


def delete(note_id: str) -> dict[str, Any]:
    return {"delete": {"note_id": note_id}}


def _one(session: Actor) -> None:
    for tier in (0, USER):
        note = session.add_note(content=f"note {session.level} {tier}", tier=tier).note
        session.add_note(content=f"note {session.level} {tier}", tier=tier)
        newer = session.update_note(note_id=note.note_id, content=f"newer {session.level}", tier=tier, etag=note.etag)
        session.update_note(note_id=note.note_id, content="x", tier=tier, etag=note.etag)
        session.delete_note(note_id=note.note_id, tier=tier, etag=note.etag)
        session.update_note(note_id=note.note_id, content="x", tier=USER - tier or MEMORY)
        session.list_notes(tier=tier)
        session.delete_note(note_id=note.note_id, tier=tier, etag=newer.note.etag)
        session.delete_note(note_id=note.note_id, tier=tier)
        session.update_note(note_id=note.note_id, content="x", tier=tier)


def _shadows(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("One note at every level, from above to below and back")
    for level in sorted(LEVELS, reverse=True):
        sessions[level].add_note(content=f"plan of {LEVELS[level]}", note_id=A)
        sessions[level].add_note(content=f"plan of {LEVELS[level]}", note_id=A)
        sessions[level].add_note(content="another text", note_id=A)
        sessions[level].add_note(content=f"plan of {LEVELS[level]}", note_id=A, tier=USER)
        sessions[level].update_note(note_id=A, content="x", tier=USER)
        for session in sessions.values():
            session.list_notes()
    for session in sessions.values():
        session.update_note(note_id=A, content=f"now of {session.level}")
        session.add_note(content="low", note_id=B)
        session.delete_note(note_id=B)
        session.list_notes(tier=USER)
    for session in sessions.values():
        sessions[PUBLIC].add_note(content="low", note_id=B)
        session.delete_note(note_id=B)
    for level in sorted(LEVELS, reverse=True):
        for session in sessions.values():
            session.delete_note(note_id=A)
        sessions[level].add_note(content="back", note_id=A)


def _broken_rules(session: Actor) -> None:
    session.stage.say(f"What breaks rules, at {LEVELS[session.level]}")
    session.add_note()
    session.add_note(content="a\0", tier=3, note_id="no id")
    session.add_note(content="a\0")
    session.add_note(content="x" * 65537)
    session.update_note()
    session.update_note(note_id=A, content="x", etag="no etag")
    session.delete_note()
    session.delete_note(note_id=A, etag="?", tier=-1)
    session.delete_note(note_id=C)
    session.list_notes(tier=3, page_size=-1)
    session.list_notes(page_token="no token")
    session.edit_notes()
    session.edit_notes(edits=[add("text"), {}, add(""), update("", "x"), delete("no id")])
    session.edit_notes(edits=[add("text"), update(A, "a\0")])
    session.edit_notes(edits=[delete(A)] * 101, tier=9)


def _edits(stage: Stage, level: int) -> None:
    stage.say(f"Several edits at once, at {LEVELS[level]}")
    agent = f"editor{level}"
    stage.host().create_agent(agent_id=agent)
    low, session = stage.open(PUBLIC, agent), stage.open(level, agent)
    low.add_note(content="from below", note_id=C)
    session.edit_notes(edits=[add("one", A), update(A, "two"), delete(A), add("three", A), add("four")])
    session.edit_notes(edits=[add("five", B), update(A, "six"), delete(B)], validate_only=True)
    session.edit_notes(edits=[update(A, "six"), delete(B)])
    session.edit_notes(edits=[add("six", A)])
    session.edit_notes(edits=[delete(C)])
    session.edit_notes(edits=[update(C, "from here"), delete(C)])
    session.edit_notes(edits=[update(A, "x")], tier=USER)
    session.edit_notes(edits=[add(f"user {number}") for number in range(3)], tier=USER)
    session.list_notes()
    session.list_notes(tier=USER)


def _budget(stage: Stage, level: int) -> None:
    stage.say(f"Budgets, at {LEVELS[level]}")
    agent = f"spender{level}"
    stage.host().create_agent(agent_id=agent, memory_settings={"memory_char_limit": 40, "user_char_limit": 10})
    low, session = stage.open(PUBLIC, agent), stage.open(level, agent)
    low.add_note(content="twelve chars", note_id=A)
    session.add_note(content="நினைவு 👩\u200d💻 é", note_id=B)
    session.add_note(content="x" * 20)
    session.update_note(note_id=B, content="y" * 26)
    session.edit_notes(edits=[add("z" * 5), add("z" * 6), add("z" * 7)], validate_only=True)
    session.add_note(content="x" * 11, tier=USER)
    session.add_note(content="x" * 10, tier=USER)
    session.add_note(content="x", tier=USER)
    stage.host().update_agent(agent_id=agent, memory_settings={"memory_char_limit": 5})
    session.list_notes()
    session.update_note(note_id=B, content="short")
    session.update_note(note_id=B, content="a far longer text than it was before")
    session.delete_note(note_id=B)
    stage.host().update_agent(agent_id=agent, memory_settings={"memory_char_limit": 0})
    session.add_note(content="x")


def _tiers(stage: Stage, level: int) -> None:
    stage.say(f"Tiers that are off, at {LEVELS[level]}")
    agent = f"quiet{level}"
    stage.host().create_agent(agent_id=agent)
    session = stage.open(level, agent)
    for tier in (MEMORY, USER):
        session.add_note(content="kept", tier=tier, note_id=(A, B)[tier - 1])
    stage.host().update_agent(agent_id=agent, memory_settings={"memory_enabled": False, "user_profile_enabled": False})
    for tier, note_id in ((MEMORY, A), (USER, B)):
        session.add_note(content="more", tier=tier)
        session.update_note(note_id=note_id, content="other", tier=tier)
        session.edit_notes(edits=[delete(note_id)], tier=tier)
        session.list_notes(tier=tier)
        session.search_notes(query="kept", tier=tier)
        session.delete_note(note_id=note_id, tier=tier)


def _lists(stage: Stage, sessions: dict[int, Actor]) -> None:
    stage.say("Lists")
    for session in sessions.values():
        for number in range(3):
            session.add_note(content=f"entry {number} of {session.level}", tier=USER)
    for session in sessions.values():
        pages = session.pages("ListNotes", tier=USER, page_size=2)
        token = pages[0].next_page_token
        session.list_notes(tier=MEMORY, page_token=token)
        session.list_notes(tier=USER, page_size=250, page_token=token)
        session.list_memories(page_token=token)
        sessions[RESTRICTED if session.level == PUBLIC else PUBLIC].list_notes(tier=USER, page_token=token)
