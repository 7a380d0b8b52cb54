"""What comes about too seldom by chance: deletes of what is there, tiers that are off, text that is there twice."""

from __future__ import annotations

from typing import Any

from tests.proof.noninterference.model.notes import SEPARATOR, usage_of
from tests.proof.noninterference.programs.alphabets import CANARY, IDS, WORDS
from tests.proof.noninterference.programs.notes import about_notes
from tests.proof.noninterference.programs.operations import Call, Pen
from tests.proof.noninterference.values import ByName, Session

_DO = {
    "delete": 50,
    "edit a block": 16,
    "a tier that is off": 16,
    "over the budget": 10,
    "an id that is taken": 8,
    "a passage's id": 6,
}


def seldom(pen: Pen) -> Call:
    session = pen.session
    if session is None:
        return about_notes(pen)
    match pen.one_of(_DO):
        case "delete":
            return _delete(pen, session)
        case "edit a block":
            blocks = [name for name, _, one in pen.model.all_seen(session.agent.blocks, pen.level) if one.content]
            label = pen.rng.choice(blocks or ["plan"])
            edit: dict[str, Any] = {"replace": {"old": pen.rng.choice((CANARY, "e", "n")), "new": "runs"}}
            if blocks and pen.chance(0.2):
                edit = {"append": {"content": "x" * 65_536}}  # never fits, and is never stored
            return "EditBlock", {"label": label, **edit, **(pen.etag("Block", label) if pen.chance(0.5) else {})}
        case "a tier that is off":
            return _in_a_tier(pen, _tier_that_is_off(session), pen.rng.choice(WORDS))
        case "over the budget":
            tier = pen.rng.choice((1, 2))
            return _in_a_tier(pen, tier, "é" * max(1, _room(pen, session, tier) + pen.rng.choice((0, 1))))
        case "a passage's id":
            passage_id = _visible(pen, session.agent.passages, IDS[0])
            return "StorePassage", {"passage_id": passage_id, "content": f"{pen.rng.choice(WORDS)} {CANARY}"}
    visible = [one[0] for one in pen.model.all_seen(session.agent.notes, pen.level)]
    edits = [{"add": {"note_id": pen.rng.choice(visible or list(IDS)), "content": CANARY}}]
    return "EditNotes", {"tier": pen.rng.choice((1, 2)), "edits": edits}


def _delete(pen: Pen, session: Session) -> Call:
    """Something visible, of the own level as often as not."""
    agent = session.agent
    match pen.rng.choice(("Memory", "Note", "Block", "Passage")):
        case "Memory":
            key = _visible(pen, agent.memories, "plan")
            return "DeleteMemory", {"key": key, **pen.etag("Memory", key)}
        case "Block":
            label = _visible(pen, agent.blocks, "plan")
            return "DeleteBlock", {"label": label, **pen.etag("Block", label)}
        case "Passage":
            return "DeletePassage", {"passage_id": _visible(pen, agent.passages, IDS[0])}
    note_id = _visible(pen, agent.notes, IDS[0])
    seen = pen.model.seen(agent.notes, note_id, pen.level)
    tier = seen[max(seen)].tier if seen else 1
    if pen.chance(0.3):
        return "EditNotes", {"tier": tier, "edits": [{"delete": {"note_id": note_id}}]}
    return "DeleteNote", {"tier": tier, "note_id": note_id, **pen.etag("Note", note_id)}


def _visible(pen: Pen, items: ByName, otherwise: str) -> str:
    seen = list(pen.model.all_seen(items, pen.level))
    own = [name for name, level, _ in seen if level == pen.level]
    return pen.rng.choice((own if own and pen.chance(0.5) else [name for name, _, _ in seen]) or [otherwise])


def _tier_that_is_off(session: Session) -> int:
    return 1 if not session.agent.shown.memory_settings.memory_enabled else 2


def _room(pen: Pen, session: Session, tier: int) -> int:
    notes = pen.model.notes_of(session.agent.notes, pen.level, tier)
    usage = usage_of(session.agent, tier, notes)
    return usage.limit_chars - usage.used_chars - len(SEPARATOR)


def _in_a_tier(pen: Pen, tier: int, content: str) -> Call:
    """The three ways to write a note."""
    notes = pen.model.notes_of(pen.session.agent.notes, pen.level, tier) if pen.session else []
    note_id = pen.rng.choice([name for name, _, _ in notes] or list(IDS))
    edit: dict[str, Any] = {"note_id": note_id, "content": content}
    match pen.rng.choice(("AddNote", "UpdateNote", "EditNotes")):
        case "AddNote":
            return "AddNote", {"tier": tier, "content": content}
        case "UpdateNote":
            before = next((version.content for name, _, version in notes if name == note_id), "")
            return "UpdateNote", {
                "tier": tier,
                **edit,
                "content": (content + before)[:400],
                **pen.etag("Note", note_id),
            }
    edits = [{"update": edit}] if pen.chance(0.5) else [{"add": {"content": content}}]
    return "EditNotes", {"tier": tier, "edits": edits}
