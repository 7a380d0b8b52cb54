-- How the audit log is sealed, as the auditor.

-- name: tenants_to_seal
SELECT tenant.tenant
  FROM vault.tenant
 ORDER BY tenant.tenant;

-- name: next_events
-- What is not sealed of the next 5,000 events after a position, oldest first; and the last of these 5,000 in any case, which is
-- the next position. So no statement takes long, however much is sealed.
WITH scanned AS (
    SELECT audit.*, row_number() OVER (ORDER BY audit.time DESC, audit.event_id DESC) = 1 AS is_last,
           (
               SELECT sealed_event.number
                 FROM muniment_auditor.sealed_event
                WHERE sealed_event.tenant = %(tenant)s
                  AND (sealed_event.by_host, sealed_event.event_id) = (audit.by_host, audit.event_id)
           ) AS number
      FROM (
               SELECT audit.*
                 FROM muniment_auditor.audit
                WHERE audit.tenant = %(tenant)s
                  AND (audit.time, audit.event_id) > (%(time)s::timestamptz, %(event_id)s::uuid)
                ORDER BY audit.time, audit.event_id
                LIMIT 5000
           ) AS audit
)
SELECT scanned.tenant, scanned.chain, scanned.by_host, scanned.event_id, scanned.time, scanned.agent, scanned.session_id,
       scanned.host_key_id, scanned.method, scanned.outcome, scanned.kind, scanned.item_id, scanned.revision,
       scanned.result_count, scanned.reason, scanned.number
  FROM scanned
 WHERE scanned.number IS NULL
    OR scanned.is_last
 ORDER BY scanned.time, scanned.event_id;

-- name: last_seals
-- The last seal of each level that has one.
SELECT chain.tenant, chain.level, chain.number, chain.time, chain.by_host, chain.event_count, chain.events_hash, chain.hash
  FROM generate_series(1, 8) AS number (level)
       CROSS JOIN LATERAL (
           SELECT seal.*
             FROM muniment_auditor.seal
            WHERE seal.tenant = %(tenant)s
              AND seal.level = number.level
            ORDER BY seal.number DESC
            LIMIT 1
       ) AS chain
 ORDER BY chain.level;

-- name: now
SELECT vault.clock() AS now;

-- name: add_seal
-- Add a seal with its events. No row: another sealer has taken the number. An event that is already sealed at another level is a
-- forged copy. It is left out, so the seal covers more events than exist, which the verification reports.
WITH added AS (
    INSERT INTO muniment_auditor.seal AS added (tenant, level, number, time, by_host, event_count, events_hash, hash)
    VALUES (%(tenant)s, %(level)s, %(number)s, %(time)s, %(by_host)s, %(event_count)s, %(events_hash)s, %(hash)s)
        ON CONFLICT (tenant, level, number) DO NOTHING
 RETURNING added.tenant, added.level, added.number, added.by_host
),
covered AS (
    INSERT INTO muniment_auditor.sealed_event AS covered (tenant, level, number, by_host, event_id)
    SELECT added.tenant, added.level, added.number, added.by_host, event.event_id
      FROM added
           CROSS JOIN unnest(%(event_ids)s::uuid[]) AS event (event_id)
        ON CONFLICT (tenant, by_host, event_id) DO NOTHING
)
SELECT added.number
  FROM added;
