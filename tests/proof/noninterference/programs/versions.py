"""Whose versions sessions list."""

from __future__ import annotations

from tests.proof.noninterference.programs.alphabets import AGENTS, IDS, KEYS, LABELS
from tests.proof.noninterference.programs.operations import Call, Pen


def about_versions(pen: Pen) -> Call:
    """Of names that others have written, as often as not."""
    agent = pen.session.agent if pen.session else None
    kinds = {
        1: (agent.memories if agent else {}, KEYS),
        2: (agent.notes if agent else {}, IDS),
        3: (agent.blocks if agent else {}, LABELS),
        4: (agent.passages if agent else {}, IDS),
    }
    kind = pen.rng.choice((1, 1, 1, 2, 3, 3, 4))
    items, alphabet = kinds[kind]
    names = [name for name in items if pen.model.seen(items, name, pen.level)] if pen.chance(0.6) else []
    owner = pen.rng.choice(AGENTS) if kind == 3 and pen.chance(0.4) else ""
    return "ListVersions", {
        "kind": kind,
        "name": pen.rng.choice(names or alphabet),
        "owner_agent_id": owner,
        "with_revisions": pen.chance(0.6),
        "page_size": pen.rng.choice((0, 0, 1, 2)),
    }
