-- How the audit log is sealed, as the auditor.

-- name: tenants_to_seal
SELECT tenant.tenant
  FROM vault.tenant
 ORDER BY tenant.tenant;

-- name: next_events
-- What is not sealed of the next 5,000 events after a position, oldest first; and the last of these 5,000 in any case, which is
-- the next position. So no statement takes long, however much is sealed.
WITH scanned AS (
    SELECT audit.*, row_number() OVER (ORDER BY audit.time DESC, audit.event_id DESC) = 1 AS is_last
      FROM (
               SELECT audit.*
                 FROM muniment_auditor.audit
                WHERE audit.tenant = %(tenant)s
                  AND (audit.time, audit.event_id) > (%(time)s::timestamptz, %(event_id)s::uuid)
                ORDER BY audit.time, audit.event_id
                LIMIT 5000
           ) AS audit
)
SELECT scanned.tenant, scanned.level, scanned.by_host, scanned.event_id, scanned.time, scanned.agent, scanned.session_id,
       scanned.host_key_id, scanned.method, scanned.outcome, scanned.kind, scanned.item_id, scanned.revision,
       scanned.result_count, scanned.reason, sealed_event.number
  FROM scanned
       LEFT JOIN muniment_auditor.sealed_event
              ON (sealed_event.tenant, sealed_event.by_host, sealed_event.event_id)
                 = (scanned.tenant, scanned.by_host, scanned.event_id)
 WHERE sealed_event.number IS NULL
    OR scanned.is_last
 ORDER BY scanned.time, scanned.event_id;

-- name: last_seal
SELECT seal.tenant, seal.level, seal.number, seal.time, seal.by_host, seal.event_count, seal.events_hash, seal.hash
  FROM muniment_auditor.seal
 WHERE seal.tenant = %(tenant)s
   AND seal.level = %(level)s
 ORDER BY seal.number DESC
 LIMIT 1;

-- name: now
SELECT vault.clock() AS now;

-- name: add_seal
-- Whoever seals at the same time has taken the number: then there is an error, and nothing is sealed.
INSERT INTO muniment_auditor.seal AS added (tenant, level, number, time, by_host, event_count, events_hash, hash)
VALUES (%(tenant)s, %(level)s, %(number)s, %(time)s, %(by_host)s, %(event_count)s, %(events_hash)s, %(hash)s);

-- name: add_sealed_events
INSERT INTO muniment_auditor.sealed_event AS added (tenant, level, number, by_host, event_id)
SELECT %(tenant)s, %(level)s, %(number)s, %(by_host)s, event.event_id
  FROM unnest(%(event_ids)s::uuid[]) AS event (event_id);
