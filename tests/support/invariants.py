"""What must hold of the tables at any moment: nothing is lost, and nothing happened unrecorded."""

from __future__ import annotations

from muniment_server.domain.classification import Classification
from tests.support.databases import Database

_BROKEN = """
WITH ledger AS (
    SELECT revision.tenant, revision.agent, revision.item_id, count(*) AS versions, min(revision.revision) AS first,
           max(revision.revision) AS last
      FROM {level}.revision
     GROUP BY revision.tenant, revision.agent, revision.item_id
),
newest AS (
    SELECT DISTINCT ON (revision.tenant, revision.agent, revision.item_id) revision.*
      FROM {level}.revision
     ORDER BY revision.tenant, revision.agent, revision.item_id, revision.revision DESC
)
SELECT 'an item without a ledger' AS what, item.item_id
  FROM {level}.item
       LEFT JOIN ledger USING (tenant, agent, item_id)
 WHERE ledger.item_id IS NULL
   AND item.kind <> 4
 UNION ALL
SELECT 'an item whose revision is not the count of its ledger', item.item_id
  FROM {level}.item
       JOIN ledger USING (tenant, agent, item_id)
 WHERE item.revision <> ledger.versions
 UNION ALL
SELECT 'a ledger with a gap', ledger.item_id
  FROM ledger
 WHERE (ledger.first, ledger.last) <> (1, ledger.versions)
 UNION ALL
SELECT 'an item unlike the newest of its ledger', item.item_id
  FROM {level}.item
       JOIN newest USING (tenant, agent, item_id)
 WHERE (item.kind, item.name, item.content, item.tags, item.update_time, item.expire_time, item.revision)
       IS DISTINCT FROM
       (newest.kind, newest.name, newest.content, newest.tags, newest.update_time, newest.expire_time, newest.revision)
    OR item.delete_time IS NULL AND item.change_id <> newest.change_id
 UNION ALL
SELECT 'two live items of one name', (array_agg(item.item_id))[1]
  FROM {level}.item
 WHERE item.delete_time IS NULL
 GROUP BY item.tenant, item.agent, item.kind, item.name
HAVING count(*) > 1
 UNION ALL
SELECT 'a version without its audit row', revision.item_id
  FROM {level}.revision
       LEFT JOIN {level}.audit
              ON (audit.tenant, audit.event_id) = (revision.tenant, revision.change_id)
             AND (audit.agent, audit.item_id, audit.revision, audit.outcome)
                 = (revision.agent, revision.item_id, revision.revision, 'OK')
 WHERE audit.event_id IS NULL
 UNION ALL
SELECT 'a deletion without its audit row', item.item_id
  FROM {level}.item
       LEFT JOIN {level}.audit
              ON (audit.tenant, audit.event_id) = (item.tenant, item.change_id)
             AND (audit.method, audit.outcome) = ('DeleteMemory', 'OK')
 WHERE item.delete_time IS NOT NULL
   AND item.kind = 1
   AND audit.event_id IS NULL
 UNION ALL
SELECT 'an audited save without its version', audit.item_id
  FROM {level}.audit
       JOIN vault.agent USING (tenant, agent)
       LEFT JOIN {level}.revision
              ON (revision.tenant, revision.change_id) = (audit.tenant, audit.event_id)
 WHERE (audit.method, audit.outcome) = ('SaveMemory', 'OK')
   AND revision.item_id IS NULL
"""


def broken_invariants(database: Database) -> list[str]:
    """What does not hold, each with the level and the item; empty when nothing was lost."""
    with database.as_owner() as owner:
        return [
            f"{level.role}: {what}: {item_id}"
            for level in Classification
            for what, item_id in owner.execute(_BROKEN.format(level=level.role).encode()).fetchall()
        ]
