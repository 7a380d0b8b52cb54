"""The scenes, in the order in which they are played. Each has a tenant of its own and knows of no other."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.scenes.agents import agents
from tests.golden.scenes.audit import audit
from tests.golden.scenes.blocks import blocks
from tests.golden.scenes.doors import doors
from tests.golden.scenes.faults import faults
from tests.golden.scenes.imports import imports
from tests.golden.scenes.many import many
from tests.golden.scenes.memories import memories
from tests.golden.scenes.notes import notes
from tests.golden.scenes.passages import passages
from tests.golden.scenes.prompts import prompts
from tests.golden.scenes.searches import searches
from tests.golden.scenes.sessions import sessions
from tests.golden.scenes.sharing import sharing
from tests.golden.scenes.taints import taints
from tests.golden.stage import Stage

SCENES: dict[str, Callable[[Stage], None]] = {
    "searches": searches,  # first, while no other items wait for vectors
    "agents": agents,
    "sessions": sessions,
    "taints": taints,
    "memories": memories,
    "many": many,
    "notes": notes,
    "blocks": blocks,
    "sharing": sharing,
    "passages": passages,
    "imports": imports,
    "prompts": prompts,
    "audit": audit,
    "doors": doors,
    "faults": faults,
}
