"""What must hold of the tables at any moment: nothing is lost, and nothing happened unrecorded."""

from __future__ import annotations

from typing import Any

import psycopg

from muniment_server.admin.connection import connect_operator
from muniment_server.admin.inspection import broken_index
from muniment_server.domain.classification import Label
from tests.rpcs import RPCS, Rpc
from tests.support.databases import Database

_LEDGERS = """
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
SELECT 'a passage with a ledger', item.item_id
  FROM {level}.item
       JOIN ledger USING (tenant, agent, item_id)
 WHERE item.kind = 4
 UNION ALL
SELECT 'an item whose revision is not the count of its ledger', item.item_id
  FROM {level}.item
       JOIN ledger USING (tenant, agent, item_id)
 WHERE item.revision <> ledger.versions
 UNION ALL
SELECT 'a passage that was written again', item.item_id
  FROM {level}.item
 WHERE item.kind = 4
   AND item.revision <> 1
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
"""
_RECORDS = """
WITH act (method, acts_on, effects) AS (
    VALUES {acts}
),
told AS ( -- what the audit says of items that was done, by sessions and by hosts; first blocks are a host's
    SELECT logged.tenant, logged.agent, logged.item_id, logged.revision, logged.event_id, logged.method, logged.kind,
           coalesce(act.acts_on, logged.kind) AS acts_on, act.effects
      FROM (
               SELECT tenant, agent, event_id, method, outcome, kind, item_id, revision
                 FROM {level}.audit
                WHERE result_count IS NULL -- a release reads, too
                UNION ALL
               SELECT tenant, agent, event_id, method, outcome, kind, item_id, revision
                 FROM muniment_control.audit
                WHERE level = {number}
                  AND {of_hosts} -- what hosts write is untrusted
                  AND item_id IS NOT NULL
                  AND method <> 'ApproveRelease' -- which a session writes
           ) AS logged
           JOIN act USING (method)
           JOIN vault.agent USING (tenant, agent)
     WHERE logged.outcome = 'OK'
       AND logged.item_id IS NOT NULL
),
undeleted AS (
    SELECT DISTINCT tenant, agent, item_id, revision, kind
      FROM told
     WHERE method = 'UndeleteItem'
),
passage AS ( -- one that expired is cleared out of the way of the next of its id, which is no deletion of anybody's
    SELECT item.*, item.delete_time IS NOT NULL AND item.expire_time IS NOT NULL
                   AND item.expire_time <= item.delete_time AS cleared
      FROM {level}.item
     WHERE item.kind = 4
),
done AS ( -- what was done, as the tables show it. Which event stored a passage that was deleted, or
       -- deleted an item that is back, they do not say
    SELECT 'version' AS effect, tenant, agent, item_id, revision, change_id AS event_id, kind
      FROM {level}.revision
     UNION ALL
    SELECT 'deletion', tenant, agent, item_id, revision, change_id, kind
      FROM {level}.item
     WHERE delete_time IS NOT NULL
       AND kind <> 4
       AND (expire_time IS NULL OR expire_time > delete_time) -- others were cleared out of the way of a rename
     UNION ALL
    SELECT 'deletion', tenant, agent, item_id, revision, change_id, kind
      FROM passage
     WHERE delete_time IS NOT NULL
       AND NOT cleared
     UNION ALL
    SELECT 'deletion', tenant, agent, item_id, CASE WHEN kind = 4 THEN revision ELSE revision - 1 END, NULL, kind
      FROM undeleted
     UNION ALL
    SELECT 'passage', tenant, agent, item_id, revision,
           CASE WHEN undeleted.item_id IS NULL AND (delete_time IS NULL OR cleared) THEN change_id END, passage.kind
      FROM passage
           LEFT JOIN undeleted USING (tenant, agent, item_id, revision)
)
SELECT 'a ' || done.effect || ' without its audit row' AS what, done.item_id
  FROM done
       LEFT JOIN told
              ON (told.tenant, told.agent, told.item_id, told.revision, told.kind)
                 = (done.tenant, done.agent, done.item_id, done.revision, done.kind)
             AND done.kind = told.acts_on
             AND done.effect = ANY(told.effects)
             AND told.event_id = coalesce(done.event_id, told.event_id)
 WHERE told.event_id IS NULL
 UNION ALL
SELECT 'an event with several effects', (array_agg(done.item_id))[1]
  FROM done
 WHERE done.event_id IS NOT NULL
 GROUP BY done.tenant, done.event_id
HAVING count(*) > 1
 UNION ALL
SELECT 'an audited write without its effect', told.item_id
  FROM told
       LEFT JOIN done
              ON (told.tenant, told.agent, told.item_id, told.revision, told.kind)
                 = (done.tenant, done.agent, done.item_id, done.revision, done.kind)
             AND done.kind = told.acts_on
             AND done.effect = ANY(told.effects)
             AND told.event_id = coalesce(done.event_id, told.event_id)
 WHERE done.item_id IS NULL
"""
_STORAGE = """
WITH counted AS (
    SELECT item.tenant, item.agent, (item.delete_time IS NULL)::integer AS items, (item.kind = 4)::integer AS versions,
           CASE WHEN item.kind = 4 THEN octet_length(item.content) ELSE 0 END AS bytes
      FROM {level}.item
     UNION ALL
    SELECT revision.tenant, revision.agent, 0, 1, octet_length(revision.content)
      FROM {level}.revision
     UNION ALL
    SELECT storage.tenant, storage.agent, -storage.items, -storage.versions, -storage.bytes
      FROM {level}.storage
)
SELECT 'an agent whose storage is miscounted', counted.agent
  FROM counted
       JOIN vault.agent USING (tenant, agent)
 WHERE agent.delete_time IS NULL
 GROUP BY counted.tenant, counted.agent
HAVING (sum(counted.items), sum(counted.versions), sum(counted.bytes)) <> (0, 0, 0)
"""


def _act(rpc: str, row: Rpc) -> str:
    """A row of `act`: an RPC, the kind of item that it acts on, and its effects."""
    assert row.leaves is not None
    kind = int(row.leaves.kind) if row.leaves.kind else "NULL"
    return f"('{rpc}', {kind}, ARRAY{list(row.leaves.effects)})"


def broken(owner: psycopg.Connection[Any]) -> list[str]:
    """What does not hold, each with the label and the item; empty when nothing was lost."""
    owner.execute("SET enable_nestloop = off")  # nothing here was ever analyzed
    acts = ", ".join(_act(rpc, row) for rpc, row in RPCS.items() if row.leaves)
    return [
        f"{label.role}: {what}: {item_id}"
        for label in Label
        for question in (_LEDGERS, _RECORDS, _STORAGE)
        for what, item_id in owner.execute(
            question.format(level=label.role, number=label.level, of_hosts=not label.is_trusted, acts=acts).encode()
        ).fetchall()
    ]


def broken_invariants(database: Database) -> list[str]:
    """The same, of a test's database."""
    with database.as_owner() as owner:
        lost = broken(owner)
    with connect_operator(database.admin) as operator:
        unlike = [
            f"{level.role}: what search finds is not what is there, {count} times"
            for level, count in broken_index(operator).items()
            if count
        ]
    return lost + unlike
