"""What sessions do with blocks."""

from __future__ import annotations

from typing import Any

from tests.proof.noninterference.programs.alphabets import AGENTS, CANARY, LABELS, SPELLINGS, WORDS
from tests.proof.noninterference.programs.memories import page_size
from tests.proof.noninterference.programs.operations import Call, Pen

_DO = {"list": 17, "get": 17, "update": 24, "edit": 29, "delete": 13}
_LARGEST = 64 * 1024


def about_blocks(pen: Pen) -> Call:
    label = pen.rng.choice(LABELS)
    sent = pen.spelled(label, SPELLINGS)
    match pen.one_of(_DO):
        case "list":
            return "ListBlocks", {"page_size": page_size(pen)}
        case "get":
            owner = pen.rng.choice(("", "", "", *AGENTS))
            return "GetBlock", {"label": _shared(pen) or sent, "owner_agent_id": owner}
        case "update":
            return "UpdateBlock", {"label": sent, "content": _content(pen), **pen.etag("Block", label)}
        case "edit":
            return "EditBlock", {"label": sent, **_edit(pen, label), **pen.etag("Block", label)}
    if pen.session:
        label = sent = pen.own(pen.session.agent.blocks, LABELS)
    return "DeleteBlock", {"label": sent, **pen.etag("Block", label)}


def _shared(pen: Pen) -> str:
    """Sometimes the label of a block that another agent shares, if one is visible."""
    blocks = pen.model.blocks_of(pen.session, pen.level) if pen.session and pen.chance(0.5) else []
    return pen.rng.choice([block.label for block in blocks if block.shared] or [""])


def _content(pen: Pen) -> str:
    lines = [f"{word} {CANARY}" for word in pen.rng.sample(WORDS, pen.rng.choice((0, 1, 1, 2, 3)))]
    between = pen.rng.choice(("\n", "\n", "\n", "\u2028"))
    return between.join(lines) + ("\n" if lines and pen.chance(0.4) else "")


def _edit(pen: Pen, label: str) -> dict[str, Any]:
    match pen.one_of({"append": 10, "insert": 10, "replace": 16, "fill": 1}):
        case "append":
            return {"append": {"content": _content(pen) or "runs"}}
        case "insert":
            return {"insert": {"line": pen.rng.choice((0, 0, 1, 1, 2, 3, 9)), "content": _content(pen) or "\n"}}
        case "replace":
            new = pen.rng.choice(("", "runs", "meeting\n", "\u2028"))
            return {"replace": {"old": _part_of(pen, label), "new": new}}
    if _seen(pen, label):
        return {"append": {"content": "x" * _LARGEST}}  # never fits, and is never stored
    return {"replace": {"old": "nowhere", "new": ""}}


def _part_of(pen: Pen, label: str) -> str:
    """A word, mostly one that is there."""
    words = _seen(pen, label).split()
    return pen.rng.choice((*words, *words, "meet", CANARY, "nn", "e", "e"))


def _seen(pen: Pen, label: str) -> str:
    """What the session's agent has under *label*."""
    if pen.session is None:
        return ""
    seen = pen.model.seen(pen.session.agent.blocks, label, pen.level)
    return seen[max(seen)].content if seen else ""
