"""What a raised taint does to the calls of a session."""

from __future__ import annotations

from tests.proof.golden.contract import LEVELS
from tests.proof.golden.stage import Actor, Stage

_LISTS: dict[str, dict[str, object]] = {
    "ListMemories": {},
    "ListNotes": {},
    "ListBlocks": {},
    "ListPassages": {},
}


def taints(stage: Stage) -> None:
    stage.host().create_agent(agent_id="alice")
    for low in LEVELS:
        for high in LEVELS:
            if low < high:
                _raised(stage, low, high)


def _raised(stage: Stage, low: int, high: int) -> None:
    stage.say(f"From {LEVELS[low]} to {LEVELS[high]}")
    stage.host().create_agent(agent_id=f"a{low}{high}", initial_blocks=[{"label": "a"}, {"label": "b"}])
    session = stage.open(low, f"a{low}{high}")
    _fill(session)
    tokens = {rpc: session.call(rpc, page_size=1, **fields).next_page_token for rpc, fields in _LISTS.items()}
    etag = session.get_memory(key="plan").memory.etag
    stage.host().raise_taint(session_id=session.session.session_id, taint=high, reason="shown more")
    session.level = high
    for rpc, token in tokens.items():
        session.call(rpc, page_token=token)
    session.save_memory(key="plan", content="higher", etag=etag)
    session.save_memory(key="plan", content="", etag=etag)
    session.delete_memory(key="other")
    session.delete_memory(key="plan")
    session.add_note(content="a note above")
    session.import_passages({"passage": {"content": "a passage above"}})
    session.render_prompt()
    session.get_session()


def _fill(session: Actor) -> None:
    for key in ("plan", "other"):
        session.save_memory(key=key, content="lower")
        session.add_note(content=f"note of {key}")
        session.store_passage(content=f"passage of {key}")
