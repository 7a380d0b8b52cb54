-- The journal of what must stay erased, revoked and frozen after a restore, as the owner.

-- name: journal_origin
-- Which database it is, by its first migration, and the time.
SELECT migration.apply_time AS database, vault.clock() AS time
  FROM vault.migration
 WHERE migration.version = 1;

-- name: list_entries
-- What was erased, deleted with its agent, revoked, frozen or thawed, oldest first. The audit log has it.
SELECT audit.tenant, audit.event_id, audit.time, audit.agent, audit.level, audit.host_key_id, audit.method, audit.kind,
       audit.item_id, audit.revision
  FROM muniment_control.audit
 WHERE audit.outcome = 'OK'
   AND (audit.method = 'EraseItems' AND audit.item_id IS NOT NULL
        OR audit.method IN ('DeleteAgent', 'host-key revoke', 'tenant freeze', 'tenant thaw'))
 ORDER BY audit.time, audit.tenant, audit.event_id;

-- name: add_entries
-- Write the audit rows of entries that the audit log lacks.
INSERT INTO muniment_control.audit AS added (tenant, event_id, time, agent, level, host_key_id, method, outcome, kind, item_id,
                                             revision)
SELECT entry.tenant, entry.event_id, entry.time, entry.agent, entry.level, entry.host_key_id, entry.method, 'OK', entry.kind,
       entry.item_id, entry.revision
  FROM jsonb_to_recordset(%(entries)s) AS entry (
           tenant bigint, event_id uuid, time timestamptz, agent bigint, level smallint, host_key_id uuid, method text,
           kind smallint, item_id uuid, revision integer
       )
    ON CONFLICT (tenant, event_id) DO NOTHING
RETURNING added.tenant, added.event_id, added.time, added.agent, added.level, added.host_key_id, added.method, added.kind,
          added.item_id, added.revision;

-- name: revoke_again
UPDATE vault.host_key AS revoked
   SET revoke_time = %(time)s
 WHERE revoked.tenant = %(tenant)s
   AND revoked.host_key_id = %(host_key_id)s
   AND revoked.revoke_time IS NULL;

-- name: freeze_again
UPDATE vault.host_key AS frozen
   SET freeze_time = %(time)s
 WHERE frozen.tenant = %(tenant)s
   AND frozen.host_key_id = %(host_key_id)s
   AND frozen.freeze_time IS NULL;

-- name: thaw_again
-- A key that was frozen after this entry stays frozen. (Such an entry is repeated only if the audit log has lost it.)
UPDATE vault.host_key AS thawed
   SET freeze_time = NULL
 WHERE thawed.tenant = %(tenant)s
   AND thawed.host_key_id = %(host_key_id)s
   AND thawed.freeze_time <= %(time)s;

-- name: delete_agent_again
-- As DeleteAgent does, but for the sessions, which a restore closes.
WITH deleted AS (
    UPDATE vault.agent AS deleted
       SET agent_id = '~' || deleted.agent, delete_time = %(time)s
     WHERE deleted.tenant = %(tenant)s
       AND deleted.agent = %(agent)s
       AND deleted.delete_time IS NULL
 RETURNING deleted.agent
),
unshared AS (
    DELETE FROM vault.shared_block AS unshared
     USING deleted
     WHERE unshared.tenant = %(tenant)s
       AND unshared.owner = deleted.agent
)
DELETE FROM vault.block_link AS detached
 USING deleted
 WHERE detached.tenant = %(tenant)s
   AND detached.consumer = deleted.agent;

-- name: order_again
-- Let the views `erasing_…` show items of one kind, if the backup has their agent.
INSERT INTO vault.erasure AS ordered (tenant, agent, erasure_id, kind, ceiling)
SELECT agent.tenant, agent.agent, %(event_id)s, %(kind)s, %(level)s
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent = %(agent)s;

-- name: end_order
DELETE FROM vault.erasure AS ended
 WHERE ended.tenant = %(tenant)s
   AND (ended.agent, ended.erasure_id) = (%(agent)s, %(event_id)s);
