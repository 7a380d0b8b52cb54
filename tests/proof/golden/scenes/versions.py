"""VersionService."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS
from tests.proof.golden.stage import Actor, Stage

MEMORY, NOTE, BLOCK, PASSAGE = 1, 2, 3, 4
ID = "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10"


def versions(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    sessions = stage.levels()
    for level in sorted(LEVELS, reverse=True):
        _write(sessions[level], f"of {LEVELS[level]}")
        for session in sessions.values():
            _list(session)
    for session in sessions.values():
        _write(session, "anew")
        _list(session)
        _refused(session)
    for session in sessions.values():
        session.delete_memory(key="plan")
        session.delete_block(label="plan")
        _list(session)


def _write(session: Actor, content: str) -> None:
    session.save_memory(key="plan", content=content, tags=["t"])
    session.add_note(note_id=ID, content=content)
    session.update_block(label="plan", content=content)
    session.store_passage(passage_id=ID, content=content)


def _list(session: Actor) -> None:
    for kind, name in ((MEMORY, "plan"), (NOTE, ID), (BLOCK, "plan"), (PASSAGE, ID)):
        session.list_versions(kind=kind, name=name)
        session.list_versions(kind=kind, name=name, with_revisions=True)
    _list_pages(session)


def _list_pages(session: Actor) -> None:
    token = ""
    for _ in range(3):
        page = session.list_versions(kind=MEMORY, name="plan", with_revisions=True, page_size=1, page_token=token)
        token = getattr(page, "next_page_token", "")


def _refused(session: Actor) -> None:
    session.list_versions(kind=MEMORY, name="never")
    session.list_versions(kind=MEMORY, name="plan", owner_agent_id="bob")
    session.list_versions(kind=BLOCK, name="plan", owner_agent_id="bob")
    session.list_versions(kind=NOTE, name="plan")
    session.list_versions(kind=MEMORY)
    session.list_versions(name="plan")
    session.list_versions(kind=7, name="plan")
    session.list_versions(kind=MEMORY, name="plan", page_size=-1)
    session.list_versions(kind=MEMORY, name="plan", page_token="none")
