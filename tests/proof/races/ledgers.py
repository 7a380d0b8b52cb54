"""What was kept, version by version, however it came to be. Whether it is sound: `tests.support.invariants`."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.items import ItemKind

_VERSIONS = """
SELECT version.name, version.content, version.revision, version.item_id, audit.method
  FROM {table} AS version
       JOIN vault.agent USING (tenant, agent)
       LEFT JOIN {label}.audit
              ON (audit.tenant, audit.event_id) = (version.tenant, version.change_id)
 WHERE version.kind = %s
   AND agent.agent_id LIKE %s
"""


class Kept(NamedTuple):
    """One version in a ledger; or a passage, of which there is only one."""

    label: Label
    name: str
    content: str
    revision: int
    item_id: UUID
    method: str | None
    """What wrote it; None for what a host wrote."""

    @property
    def level(self) -> Classification:
        """The level of the label."""
        return self.label.level


def versions(owner: psycopg.Connection[Any], agent_id: str = "%", *, kind: ItemKind = ItemKind.MEMORY) -> list[Kept]:
    """Every version of every item of one kind, of the agents whose id is LIKE *agent_id*."""
    table = "item" if kind is ItemKind.PASSAGE else "revision"
    return [
        Kept(label, *row)
        for label in Label
        for row in owner.execute(
            _VERSIONS.format(label=label.role, table=f"{label.role}.{table}").encode(), [kind, agent_id]
        ).fetchall()
    ]
