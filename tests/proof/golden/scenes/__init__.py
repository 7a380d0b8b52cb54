"""The scenes, in the order in which they are played. Each has a tenant of its own and knows of no other."""

from __future__ import annotations

from collections.abc import Callable

from tests.proof.golden.scenes.agents import agents
from tests.proof.golden.scenes.audit import audit
from tests.proof.golden.scenes.blocks import blocks
from tests.proof.golden.scenes.doors import doors
from tests.proof.golden.scenes.faults import faults
from tests.proof.golden.scenes.imports import imports
from tests.proof.golden.scenes.many import many
from tests.proof.golden.scenes.memories import memories
from tests.proof.golden.scenes.notes import notes
from tests.proof.golden.scenes.passages import passages
from tests.proof.golden.scenes.prompts import prompts
from tests.proof.golden.scenes.releases import releases
from tests.proof.golden.scenes.searches import searches
from tests.proof.golden.scenes.sessions import sessions
from tests.proof.golden.scenes.sharing import sharing
from tests.proof.golden.scenes.taints import taints
from tests.proof.golden.scenes.versions import versions
from tests.proof.golden.stage import Stage

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
    "versions": versions,
    "releases": releases,
    "audit": audit,
    "doors": doors,
    "faults": faults,
}
