"""PromptService."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS, PUBLIC, RESTRICTED
from tests.proof.golden.stage import Actor, Stage

BLOCK, MEMORY, USER = 1, 2, 3


def prompts(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice", initial_blocks=[{"label": "persona", "content": "I am Alice.\n"}])
    sessions = stage.levels()
    for session in sessions.values():
        session.render_prompt()
    for session in sessions.values():
        _fill(session)
    for session in sessions.values():
        _rendered(session)
        _refused(session)
    _tiers_off(stage, sessions)
    for level in LEVELS:
        _too_large(stage, level)


def _fill(session: Actor) -> None:
    level = session.level
    session.update_block(label="plan", content=f"### plan\n\n§\n{'═' * 48}\nof {level}\r\n")
    session.update_block(label=f"z{level}", content="")
    session.add_note(content=f"note {level}\n§\nnot another", tier=1)
    session.add_note(content=f"The user has {level} cats. நினைவு", tier=2)


def _rendered(session: Actor) -> None:
    whole = session.render_prompt()
    session.render_prompt(if_none_match=whole.etag)
    session.render_prompt(if_none_match="another")
    steady = session.render_prompt(omit_usage=True)
    session.render_prompt(omit_usage=True, if_none_match=steady.etag)
    for sections in ([BLOCK], [MEMORY], [USER], [USER, MEMORY], [USER, BLOCK]):
        session.render_prompt(sections=sections)
    session.render_prompt(sections=[MEMORY], omit_usage=True)


def _refused(session: Actor) -> None:
    session.render_prompt(sections=[0])
    session.render_prompt(sections=[4, -1])
    session.render_prompt(sections=[BLOCK, BLOCK])
    session.render_prompt(sections=[BLOCK] * 4, if_none_match="x" * 65)


def _tiers_off(stage: Stage, sessions: dict[int, Actor]) -> None:
    for setting in ("memory_enabled", "user_profile_enabled"):
        stage.host().update_agent(agent_id="alice", memory_settings={setting: False})
        for session in sessions.values():
            session.render_prompt()
    for session in sessions.values():
        session.render_prompt(sections=[USER])


def _too_large(stage: Stage, level: int) -> None:
    if level == PUBLIC:
        stage.host().create_agent(
            agent_id="wordy",
            initial_blocks=[{"label": f"b{number}", "content": "x" * 60_000} for number in range(15)],
        )
        writer = stage.open(PUBLIC, "wordy")
        for number in range(15, 52):
            writer.update_block(label=f"b{number}", content="y" * 60_000)
    session = stage.open(level, "wordy")
    session.render_prompt()
    session.render_prompt(sections=[MEMORY])
    if level == RESTRICTED:
        session.pages("ListBlocks", page_size=250)
