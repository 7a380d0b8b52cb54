-- Statements of operators' commands, run as the owner.

-- name: lock_tenants
LOCK TABLE vault.tenant IN SHARE ROW EXCLUSIVE MODE;

-- name: find_tenant
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.name = %(name)s;

-- name: list_tenant_names
SELECT tenant.name
  FROM vault.tenant
 ORDER BY tenant.tenant;

-- name: list_tenants
SELECT tenant.tenant
  FROM vault.tenant
 ORDER BY tenant.tenant;

-- name: list_moving
-- The tenants that are moving to another server, or from one, and so are not served here.
SELECT tenant.name AS tenant, tenant.moving_to, tenant.moving_from
  FROM vault.tenant
 WHERE tenant.moving_to IS NOT NULL
    OR tenant.moving_from IS NOT NULL
 ORDER BY tenant.name;

-- name: is_moving
-- Whether a tenant is moving to another server, or from one. The lock is one that a new host key takes anyway.
SELECT tenant.moving_to IS NOT NULL OR tenant.moving_from IS NOT NULL AS is_moving
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s
   FOR KEY SHARE;

-- name: skip_tenant_numbers
-- Give no later tenant one of these numbers. Those outside the range of this server are ignored: no tenant gets them here.
SELECT setval('vault.tenant_tenant_seq', greatest(numbers.last_value, given.tenant))
  FROM vault.tenant_tenant_seq AS numbers
       JOIN pg_sequence AS sequence
            ON sequence.seqrelid = 'vault.tenant_tenant_seq'::regclass
       JOIN unnest(%(tenants)s::bigint[]) AS given (tenant)
            ON given.tenant BETWEEN sequence.seqmin AND least(sequence.seqmax, sequence.seqmin + %(range)s - 1)
 ORDER BY given.tenant;

-- name: create_tenant
INSERT INTO vault.tenant AS tenant (name)
VALUES (%(name)s)
RETURNING tenant.tenant;

-- name: create_host_key
WITH created AS (
    INSERT INTO vault.host_key AS created (tenant, host_key_id, key_hash, ceiling, expire_time, only_service)
    SELECT %(tenant)s, %(host_key_id)s, %(key_hash)s, %(ceiling)s, vault.clock() + %(lifetime)s::interval, %(only_service)s
 RETURNING created.tenant, created.host_key_id, created.ceiling
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
SELECT created.tenant, gen_random_uuid(), created.ceiling, created.host_key_id, 'host-key create', 'OK', 'by ' || %(login)s::text
  FROM created;

-- name: list_host_keys
SELECT host_key.host_key_id, tenant.name AS tenant, host_key.ceiling, host_key.only_service, host_key.create_time,
       host_key.expire_time, host_key.freeze_time, host_key.revoke_time
  FROM vault.host_key
       JOIN vault.tenant USING (tenant)
 ORDER BY tenant.name, host_key.create_time, host_key.host_key_id;

-- name: revoke_host_key
WITH revoked AS (
    UPDATE vault.host_key AS revoked
       SET revoke_time = vault.clock()
     WHERE revoked.host_key_id = %(host_key_id)s
       AND revoked.revoke_time IS NULL
 RETURNING revoked.tenant, revoked.host_key_id, revoked.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT revoked.tenant, gen_random_uuid(), revoked.ceiling, revoked.host_key_id, 'host-key revoke', 'OK', 'by ' || %(login)s::text
      FROM revoked
)
SELECT revoked.tenant
  FROM revoked;

-- name: freeze_host_keys
-- Freeze the keys of a tenant, with an audit row for each.
WITH frozen AS (
    UPDATE vault.host_key AS frozen
       SET freeze_time = vault.clock()
     WHERE frozen.tenant = %(tenant)s
       AND frozen.revoke_time IS NULL
       AND frozen.freeze_time IS NULL
 RETURNING frozen.tenant, frozen.host_key_id, frozen.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT frozen.tenant, gen_random_uuid(), frozen.ceiling, frozen.host_key_id, 'tenant freeze', 'OK', 'by ' || %(login)s::text
      FROM frozen
)
SELECT count(*) AS rows
  FROM frozen;

-- name: thaw_host_keys
-- End the freeze of the keys of a tenant, with an audit row for each.
WITH thawed AS (
    UPDATE vault.host_key AS thawed
       SET freeze_time = NULL
     WHERE thawed.tenant = %(tenant)s
       AND thawed.freeze_time IS NOT NULL
 RETURNING thawed.tenant, thawed.host_key_id, thawed.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT thawed.tenant, gen_random_uuid(), thawed.ceiling, thawed.host_key_id, 'tenant thaw', 'OK', 'by ' || %(login)s::text
      FROM thawed
)
SELECT count(*) AS rows
  FROM thawed;

-- name: sessions_of_host_key
-- The open sessions that a host key has opened, by its audit rows. No session lasts longer than 30 days.
SELECT session.tenant, session.session_id
  FROM vault.host_key
       JOIN muniment_control.audit USING (tenant, host_key_id)
       JOIN vault.session USING (tenant, session_id)
 WHERE host_key.host_key_id = %(host_key_id)s
   AND audit.method IN ('OpenSession', 'ResetSession')
   AND audit.outcome = 'OK'
   AND audit.time > vault.clock() - interval '31 days'
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();

-- name: close_sessions
-- Close the open sessions of all tenants, of one tenant or of one agent, or those of some ids, with an audit row for each.
WITH closed AS (
    UPDATE vault.session AS closed
       SET close_time = vault.clock()
     WHERE closed.close_time IS NULL
       AND closed.expire_time > vault.clock()
       AND (%(tenant)s::bigint IS NULL OR closed.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR closed.agent = %(agent)s)
       AND (%(session_ids)s::uuid[] IS NULL OR closed.session_id = ANY(%(session_ids)s))
 RETURNING closed.tenant, closed.agent, closed.session_id, closed.conversation_id
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, session_id, method, outcome, reason)
    SELECT closed.tenant, gen_random_uuid(), closed.agent, conversation.taint, closed.session_id, %(command)s, 'CLOSED',
           'by ' || %(login)s::text
      FROM closed
           JOIN vault.conversation USING (tenant, agent, conversation_id)
)
SELECT count(*) AS rows
  FROM closed;

-- name: purge_sessions
-- Remove a batch of a tenant's sessions, or of those of one agent, that were closed or expired before a time, in the order of
-- their ids. No open one, whatever the time. Conversations stay, which keep the taint, and audit rows. Each audit row names
-- its agent, since whoever reads it must reach the ceiling of that.
WITH old_session AS (
    SELECT session.session_id
      FROM vault.session
     WHERE session.tenant = %(tenant)s
       AND session.session_id > %(last_session)s
       AND least(session.close_time, session.expire_time) < least(%(before)s, vault.clock())
       AND (%(agent)s::bigint IS NULL OR session.agent = %(agent)s)
     ORDER BY session.session_id
     LIMIT %(most)s
       FOR UPDATE SKIP LOCKED
),
purged AS (
    DELETE FROM vault.session AS purged
     USING old_session
     WHERE purged.tenant = %(tenant)s
       AND purged.session_id = old_session.session_id
 RETURNING purged.tenant, purged.agent, purged.session_id, purged.conversation_id
),
classified AS (
    SELECT purged.tenant, purged.agent, purged.session_id, conversation.taint
      FROM purged
           JOIN vault.conversation USING (tenant, agent, conversation_id)
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, reason)
    SELECT found.tenant, gen_random_uuid(), found.agent, found.taint, 'purge sessions', 'OK', 'by ' || %(login)s::text
      FROM (SELECT DISTINCT classified.tenant, classified.agent, classified.taint FROM classified) AS found
)
SELECT classified.session_id, classified.taint
  FROM classified
 ORDER BY classified.session_id;

-- name: find_agent
SELECT agent.tenant, agent.agent
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
 WHERE tenant.name = %(tenant_name)s
   AND agent.agent_id = %(agent_id)s
   AND agent.delete_time IS NULL;

-- name: use_schema
-- Resolve unqualified names in one schema until the end of the transaction.
SELECT set_config('search_path', %(schema)s, true);

-- name: accepts_host_key
SELECT host_key.host_key_id
  FROM muniment_control.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.key_hash = %(key_hash)s;

-- name: get_tenant_limits
SELECT tenant.name AS tenant, tenant.max_agents, tenant.calls_per_second, tenant.max_items, tenant.max_bytes
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s;

-- name: set_tenant_limits
-- Set what is not null, with an audit row; -1 removes a limit.
WITH limited AS (
    UPDATE vault.tenant AS limited
       SET max_agents       = nullif(coalesce(%(max_agents)s, limited.max_agents), -1),
           calls_per_second = nullif(coalesce(%(calls_per_second)s, limited.calls_per_second), -1),
           max_items        = nullif(coalesce(%(max_items)s, limited.max_items), -1),
           max_bytes        = nullif(coalesce(%(max_bytes)s, limited.max_bytes), -1)
     WHERE limited.tenant = %(tenant)s
 RETURNING limited.tenant
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, method, outcome, reason)
SELECT limited.tenant, gen_random_uuid(), 4, 'tenant limits', 'OK', 'by ' || %(login)s::text
  FROM limited;

-- name: nearly_full_agents
-- The agents that have stored a part of what they may at one level, or more of it.
SELECT tenant.name AS tenant, agent.agent_id, stored.items, agent.max_items, stored.bytes, agent.max_bytes
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
       CROSS JOIN LATERAL (
           SELECT coalesce(sum(storage_size.items), 0)::bigint AS items, coalesce(sum(storage_size.bytes), 0)::bigint AS bytes
             FROM storage_size
            WHERE (storage_size.tenant, storage_size.agent) = (agent.tenant, agent.agent)
       ) AS stored
 WHERE agent.delete_time IS NULL
   AND (stored.items >= greatest(%(part)s * agent.max_items, 1) OR stored.bytes >= greatest(%(part)s * agent.max_bytes, 1))
 ORDER BY tenant.name, agent.agent_id;

-- name: count_agents
SELECT (SELECT count(*) FROM vault.tenant) AS tenants, (SELECT count(*) FROM vault.agent) AS agents;

-- name: referenced_tables
-- All tables, each with those that its foreign keys refer to.
SELECT pg_class.oid::regclass::text,
       ARRAY(
           SELECT pg_constraint.confrelid::regclass::text
             FROM pg_constraint
            WHERE pg_constraint.conrelid = pg_class.oid
              AND pg_constraint.contype = 'f'
              AND pg_constraint.confrelid <> pg_class.oid
       )
  FROM pg_class
 WHERE pg_class.relkind = 'r'
   AND pg_get_userbyid(pg_class.relowner) = %(owner)s;

-- name: lock_for_restore
-- Whether this session holds the lock of a restore, which a restore that was killed has lost.
SELECT pg_try_advisory_lock(1919251316);

-- name: end_killed_loads
-- End what the pg_restore of a command that was killed still loads.
SELECT pg_terminate_backend(pg_stat_activity.pid, 10000)
  FROM pg_stat_activity
 WHERE pg_stat_activity.datname = current_database()
   AND pg_stat_activity.application_name = 'pg_restore';

-- name: use_one_connection_to_each_node
-- Until the transaction ends, Citus uses one connection to each node: it refuses to change the schema after parallel statements.
-- No effect on plain Postgres.
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true);
