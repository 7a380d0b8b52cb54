"""What must be true of items, ledger and audit whenever nobody writes, however they came to be."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg

from muniment_server.domain.classification import Classification

_BROKEN = """
WITH ledger AS (
    SELECT tenant, agent, item_id, count(*) AS versions, min(revision) AS first, max(revision) AS last
      FROM {level}.revision
     GROUP BY tenant, agent, item_id
),
saved AS (
    SELECT audit.tenant, audit.event_id
      FROM {level}.audit JOIN vault.agent USING (tenant, agent)
     WHERE (audit.method, audit.outcome) = ('SaveMemory', 'OK')
),
erased AS (
    SELECT audit.tenant, audit.event_id
      FROM {level}.audit JOIN vault.agent USING (tenant, agent)
     WHERE (audit.method, audit.outcome) = ('DeleteMemory', 'OK')
)
SELECT 'a gap in the ledger', item_id::text
  FROM ledger
 WHERE first <> 1 OR versions <> last
 UNION ALL
SELECT 'item.revision is not the number of versions', item.item_id::text
  FROM {level}.item LEFT JOIN ledger USING (tenant, agent, item_id)
 WHERE item.kind <> 4 AND ledger.versions IS DISTINCT FROM item.revision
 UNION ALL
SELECT 'the newest version is not the item', item.item_id::text
  FROM {level}.item LEFT JOIN {level}.revision USING (tenant, agent, item_id, revision)
 WHERE item.kind <> 4
   AND ((revision.name, revision.content, revision.tags, revision.expire_time)
        IS DISTINCT FROM (item.name, item.content, item.tags, item.expire_time)
        OR item.delete_time IS NULL AND revision.change_id IS DISTINCT FROM item.change_id)
 UNION ALL
SELECT 'a version without audit', change_id::text
  FROM {level}.revision WHERE kind = 1 AND NOT EXISTS (SELECT FROM saved WHERE saved.event_id = change_id)
 UNION ALL
SELECT 'an audited save without version', event_id::text
  FROM saved WHERE NOT EXISTS (SELECT FROM {level}.revision WHERE change_id = event_id)
 UNION ALL
SELECT 'a deletion without audit', change_id::text
  FROM {level}.item
 WHERE kind = 1 AND delete_time IS NOT NULL AND NOT EXISTS (SELECT FROM erased WHERE erased.event_id = change_id)
 UNION ALL
SELECT 'an audited deletion without effect', event_id::text
  FROM erased
 WHERE NOT EXISTS (SELECT FROM {level}.item WHERE change_id = event_id AND delete_time IS NOT NULL)
"""
_VERSIONS = """
SELECT revision.name, revision.content, revision.revision, revision.item_id
  FROM {level}.revision JOIN vault.agent USING (tenant, agent)
 WHERE agent.agent_id LIKE %s
"""


class Kept(NamedTuple):
    """One version in a ledger."""

    level: Classification
    name: str
    content: str
    revision: int


def broken(owner: psycopg.Connection[Any]) -> list[tuple[str, str, str]]:
    """Everything that contradicts itself, at any level; empty when all is well."""
    owner.execute("SET enable_nestloop = off")  # nothing here was ever analyzed
    return [
        (level.name, str(what), str(which))
        for level in Classification
        for what, which in owner.execute(_at(level, _BROKEN)).fetchall()
    ]


def versions(owner: psycopg.Connection[Any], agent_id: str = "%") -> list[Kept]:
    """Every version of every item of the agents whose id is LIKE *agent_id*."""
    return [
        Kept(level, row.name, row.content, row.revision)
        for level in Classification
        for row in owner.execute(_at(level, _VERSIONS), [agent_id]).fetchall()
    ]


def _at(level: Classification, text: str) -> bytes:
    return text.replace("{level}", level.role).encode()
