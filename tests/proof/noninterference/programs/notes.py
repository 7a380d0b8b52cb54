"""What sessions do with notes: around the edge of the budget, as often as not."""

from __future__ import annotations

from typing import Any

from tests.proof.noninterference.model.notes import SEPARATOR, usage_of
from tests.proof.noninterference.programs.alphabets import CANARY, IDS, WORDS
from tests.proof.noninterference.programs.memories import page_size, question
from tests.proof.noninterference.programs.operations import Call, Pen

_DO = {"add": 25, "update": 23, "delete": 12, "edit": 20, "list": 11, "search": 9}


def about_notes(pen: Pen) -> Call:
    tier = pen.rng.choice((0, 1, 1, 2, 2))
    note_id = _known_id(pen, tier)
    match pen.one_of(_DO):
        case "add":
            return "AddNote", {"tier": tier, **_add(pen, tier)}
        case "update":
            return "UpdateNote", {
                "tier": tier,
                "note_id": note_id,
                "content": _content(pen, tier, instead_of=note_id),
                **pen.etag("Note", note_id),
            }
        case "delete":
            return "DeleteNote", {"tier": tier, "note_id": note_id, **pen.etag("Note", note_id)}
        case "edit":
            edits = [edit for _ in range(pen.rng.choice((1, 2, 2, 3, 4))) for edit in _edits(pen, tier)]
            return "EditNotes", {"tier": tier, "edits": edits, "validate_only": pen.chance(0.25)}
        case "list":
            return "ListNotes", {"tier": tier, "page_size": page_size(pen)}
    return "SearchNotes", {"tier": tier, **question(pen)}


def _edits(pen: Pen, tier: int) -> list[dict[str, Any]]:
    """One edit, or two that belong together."""
    note_id = _known_id(pen, tier)
    match pen.one_of({"add": 4, "update": 4, "delete": 2, "lay bare": 1}):
        case "add":
            return [{"add": _add(pen, tier)}]
        case "update":
            return [{"update": {"note_id": note_id, "content": _content(pen, tier, instead_of=note_id)}}]
        case "lay bare":
            return [{"delete": {"note_id": note_id}}, {"add": {"note_id": note_id, "content": _below(pen, note_id)}}]
    return [{"delete": {"note_id": note_id}}]


def _below(pen: Pen, note_id: str) -> str:
    """What is seen of a note when the own-level version is deleted."""
    seen = pen.model.seen(pen.session.agent.notes, note_id, pen.level - 1) if pen.session else {}
    return seen[max(seen)].content if seen else CANARY


def _add(pen: Pen, tier: int) -> dict[str, Any]:
    given = pen.rng.choice((*IDS, *IDS, *pen.seen.ids.get("Note", [])[-2:]))
    note_id = given if pen.chance(0.55) else ""
    if pen.chance(0.2) and pen.session:
        # Its content of now: a call repeated, or an exact duplicate.
        notes = pen.model.notes_of(pen.session.agent.notes, pen.level, tier or 1)
        if notes:
            name, _, version = pen.rng.choice(notes)
            return {"note_id": pen.rng.choice(("", name, note_id)), "content": version.content}
    return {"note_id": note_id, "content": _content(pen, tier)}


def _known_id(pen: Pen, tier: int) -> str:
    """The id of a note: mostly one that is visible, of the own level as often as not."""
    if pen.session and pen.chance(0.8):
        notes = pen.model.notes_of(pen.session.agent.notes, pen.level, tier or 1)
        own = [name for name, level, _ in notes if level == pen.level]
        visible = own if own and pen.chance(0.5) else [name for name, _, _ in notes]
        if visible:
            return pen.rng.choice(visible)
    return pen.rng.choice((*IDS, *pen.seen.ids.get("Note", [])[-6:]))


def _content(pen: Pen, tier: int, *, instead_of: str = "") -> str:
    """Short, or so long that the budget is just met, or just not."""
    if pen.session and pen.chance(0.4):
        length = _room(pen, tier or 1, instead_of) + pen.rng.choice((-1, 0, 1, 1))
        if len(CANARY) < length <= 400:
            return CANARY + "é" * (length - len(CANARY))
    return f"{pen.words(WORDS, (1, 1, 1, 2))} {CANARY}"


def _room(pen: Pen, tier: int, instead_of: str) -> int:
    """How long a note may be, in the place of another or as one more."""
    assert pen.session
    notes = pen.model.notes_of(pen.session.agent.notes, pen.level, tier)
    others = [note for note in notes if note[0] != instead_of]
    usage = usage_of(pen.session.agent, tier, others)
    return usage.limit_chars - usage.used_chars - (len(SEPARATOR) if others else 0)
