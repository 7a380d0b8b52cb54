-- How the seals of the audit log are verified, and sealed events removed, as the owner. level: the number of a chain.

-- name: avoid_nested_loops
-- Whole tables are compared: before they are analyzed, loops over one of them for each row of the other would take hours.
SELECT set_config('enable_nestloop', %(enabled)s, true);

-- name: list_seals
SELECT seal.tenant, seal.level, seal.number, seal.time, seal.by_host, seal.event_count, seal.events_hash, seal.hash
  FROM muniment_auditor.seal
 WHERE seal.tenant = %(tenant)s
   AND seal.level = %(level)s
   AND seal.number > %(after)s
 ORDER BY seal.number
 LIMIT 20;

-- name: list_sealed_events
-- The events of some seals, without those that are gone or are stored at another level.
SELECT audit.tenant, audit.chain, audit.by_host, audit.event_id, audit.time, audit.agent, audit.session_id, audit.host_key_id,
       audit.method, audit.outcome, audit.kind, audit.item_id, audit.revision, audit.result_count, audit.reason,
       sealed_event.number
  FROM muniment_auditor.sealed_event
       JOIN muniment_auditor.audit
            ON (audit.tenant, audit.chain, audit.by_host, audit.event_id)
               = (sealed_event.tenant, sealed_event.level, sealed_event.by_host, sealed_event.event_id)
 WHERE sealed_event.tenant = %(tenant)s
   AND sealed_event.level = %(level)s
   AND sealed_event.number BETWEEN %(first)s AND %(last)s;

-- name: unsealed_events
-- The events that no seal of their level covers. *copies* of them have the id of an event that is sealed at another level.
-- *overtaken* is when an event that was written after the first of them had been sealed: the latest time of all seals up to
-- that event's, because a clock may have been back when one of them was made.
WITH event AS (
    SELECT audit.event_id, audit.time, audit.written_by, FALSE AS by_host
      FROM audit
     WHERE audit.tenant = %(tenant)s
     UNION ALL
    SELECT audit.event_id, audit.time, audit.written_by, TRUE
      FROM muniment_control.audit
     WHERE audit.tenant = %(tenant)s
       AND audit.level + 4 * audit.trusted::integer = %(level)s
),
covered AS (
    SELECT event.time, event.written_by, sealed_event.level, sealed_event.number
      FROM event
           LEFT JOIN muniment_auditor.sealed_event
                ON sealed_event.tenant = %(tenant)s
               AND sealed_event.by_host = event.by_host
               AND sealed_event.event_id = event.event_id
),
unsealed AS (
    SELECT count(*) AS number, count(covered.level) AS copies, min(covered.time) AS oldest, min(covered.written_by) AS first
      FROM covered
     WHERE covered.level IS DISTINCT FROM %(level)s
)
SELECT unsealed.number, unsealed.copies, unsealed.oldest, vault.clock() AS now,
       (
           SELECT max(seal.time)
             FROM muniment_auditor.seal
            WHERE seal.tenant = %(tenant)s
              AND seal.level = %(level)s
              AND seal.number <= (
                      SELECT min(covered.number)
                        FROM covered
                       WHERE covered.level = %(level)s
                         AND covered.written_by > unsealed.first
                  )
       ) AS overtaken
  FROM unsealed;

-- name: unaudited_changes
-- The changes of items at one level without an audit event of the item at this level: those with one at another level or of
-- another item, and those without any that are not older than the events that were removed.
WITH change AS (
    SELECT item.change_id, item.agent, item.item_id, item.update_time
      FROM item
     WHERE item.tenant = %(tenant)s
     UNION
    SELECT revision.change_id, revision.agent, revision.item_id, revision.update_time
      FROM revision
     WHERE revision.tenant = %(tenant)s
),
unaudited AS (
    SELECT change.change_id, change.agent, change.item_id, change.update_time
      FROM change
     WHERE NOT EXISTS (
               SELECT
                 FROM muniment_auditor.audit
                WHERE audit.tenant = %(tenant)s
                  AND (audit.event_id, audit.agent, audit.item_id) = (change.change_id, change.agent, change.item_id)
                  AND audit.chain = %(level)s
           )
),
found AS (
    SELECT unaudited.update_time,
           EXISTS (
               SELECT
                 FROM muniment_auditor.audit
                WHERE audit.tenant = %(tenant)s
                  AND audit.event_id = unaudited.change_id
           ) AS is_elsewhere
      FROM unaudited
)
SELECT count(*) FILTER (WHERE found.is_elsewhere) AS elsewhere,
       count(*) FILTER (WHERE NOT found.is_elsewhere AND found.update_time >= %(removed_until)s) AS nowhere,
       count(*) FILTER (WHERE NOT found.is_elsewhere AND found.update_time < %(removed_until)s) AS not_compared
  FROM found;

-- name: list_removals
-- The audit events that say which sealed events were removed, at any level.
SELECT audit.time, audit.reason
  FROM muniment_control.audit
 WHERE audit.tenant = %(tenant)s
   AND audit.method = 'audit purge'
   AND audit.outcome = 'OK'
 ORDER BY audit.time;

-- name: newest_removable_seal
-- The last seal that was made before a time, as were all seals before it: the clock may have been set back.
SELECT seal.number, seal.hash
  FROM muniment_auditor.seal
 WHERE seal.tenant = %(tenant)s
   AND seal.level = %(level)s
   AND seal.time < %(before)s
   AND NOT EXISTS (
           SELECT
             FROM muniment_auditor.seal AS newer
            WHERE newer.tenant = %(tenant)s
              AND newer.level = %(level)s
              AND newer.number < seal.number
              AND newer.time >= %(before)s
       )
 ORDER BY seal.number DESC
 LIMIT 1;

-- name: record_removal
-- At the highest level: seals cover events of all agents, so hosts with lower ceilings must not learn of them.
INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, method, outcome, reason)
VALUES (%(tenant)s, gen_random_uuid(), 4, 'audit purge', 'OK', %(reason)s || ' by ' || %(login)s::text);

-- name: remove_events
-- Remove events of sessions that seals up to a number cover, 20 seals at a time, in the schema of their level.
WITH covered AS (
    SELECT seal.number
      FROM muniment_auditor.seal
     WHERE seal.tenant = %(tenant)s
       AND seal.level = %(level)s
       AND seal.number > %(after)s
       AND seal.number <= %(last)s
     ORDER BY seal.number
     LIMIT 20
),
uncovered AS (
    DELETE FROM muniment_auditor.sealed_event AS uncovered
     USING covered
     WHERE uncovered.tenant = %(tenant)s
       AND uncovered.level = %(level)s
       AND uncovered.number = covered.number
       AND NOT uncovered.by_host
 RETURNING uncovered.event_id
),
removed AS (
    DELETE FROM audit AS removed
     USING uncovered
     WHERE removed.tenant = %(tenant)s
       AND removed.event_id = uncovered.event_id
 RETURNING removed.event_id
)
SELECT (SELECT max(covered.number) FROM covered) AS last, (SELECT count(*) FROM removed) AS events;

-- name: name_agents
-- What hosts call agents. Erased ones have no name.
SELECT agent.agent, agent.agent_id
  FROM vault.agent
 WHERE agent.agent = ANY (%(numbers)s::bigint[]);
