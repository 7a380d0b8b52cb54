-- How a tenant moves to another database server, as the owner of both databases.

-- name: places
-- Where the tenant of a name stands in this database.
SELECT tenant.tenant, tenant.name, tenant.moving_to, tenant.moving_from
  FROM vault.tenant
 WHERE tenant.name = %(name)s
 ORDER BY tenant.tenant;

-- name: holder
-- Which tenant has a number.
SELECT tenant.tenant, tenant.name, tenant.moving_to, tenant.moving_from
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s;

-- name: version
SELECT max(migration.version) AS version
  FROM vault.migration;

-- name: tables
-- The tables with rows of tenants, each with the columns that are stored, and with those that identify a row.
SELECT namespace.nspname AS schema, class.relname AS name,
       array_agg(attribute.attname::text ORDER BY attribute.attnum) AS columns,
       array_agg(attribute.attname::text ORDER BY attribute.attnum)
           FILTER (WHERE attribute.attnum = ANY(key.conkey)) AS key
  FROM pg_class AS class
       JOIN pg_namespace AS namespace
            ON namespace.oid = class.relnamespace
           AND namespace.nspname = ANY(%(schemas)s)
       JOIN pg_attribute AS attribute
            ON attribute.attrelid = class.oid
           AND attribute.attnum > 0
           AND NOT attribute.attisdropped
           AND attribute.attgenerated = ''
       JOIN pg_constraint AS key
            ON key.conrelid = class.oid
           AND key.contype = 'p'
 WHERE class.relkind = 'r'
 GROUP BY namespace.nspname, class.relname
HAVING bool_or(attribute.attname = 'tenant')
 ORDER BY namespace.nspname, class.relname;

-- name: references
-- Which of these tables refers to which.
SELECT own.relnamespace::regnamespace::text AS schema, own.relname AS name,
       other.relnamespace::regnamespace::text AS to_schema, other.relname AS to_name
  FROM pg_constraint AS foreign_key
       JOIN pg_class AS own
            ON own.oid = foreign_key.conrelid
       JOIN pg_class AS other
            ON other.oid = foreign_key.confrelid
 WHERE foreign_key.contype = 'f'
   AND own.relnamespace::regnamespace::text = ANY(%(schemas)s);

-- name: being_erased
-- How many deleted agents of a tenant are not yet erased.
SELECT count(*) AS rows
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.delete_time IS NOT NULL;

-- name: lock_moving_tenant
-- From here on no agent and no host key can be made, and no other move goes on.
SELECT tenant.tenant, tenant.name, tenant.moving_to, tenant.moving_from
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s
   FOR UPDATE;

-- name: await_moves
-- Wait for the end of a move of the tenant, and of a commit of one that is in doubt.
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s
   FOR SHARE;

-- name: leave
UPDATE vault.tenant
   SET moving_to = %(server)s
 WHERE tenant.tenant = %(tenant)s;

-- name: stay
UPDATE vault.tenant
   SET moving_to = NULL
 WHERE tenant.tenant = %(tenant)s;

-- name: arrive
-- The tenant, which is not served until `activate`. Inserts nothing if the tenant is there.
INSERT INTO vault.tenant AS tenant (tenant, name, max_agents, calls_per_second, max_items, max_bytes, release_approvals, moving_from)
OVERRIDING SYSTEM VALUE
VALUES (%(tenant)s, %(name)s, %(max_agents)s, %(calls_per_second)s, %(max_items)s, %(max_bytes)s, %(release_approvals)s, %(server)s)
ON CONFLICT (tenant) DO NOTHING;

-- name: tenant
SELECT tenant.name, tenant.max_agents, tenant.calls_per_second, tenant.max_items, tenant.max_bytes, tenant.release_approvals
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s;

-- name: activate
UPDATE vault.tenant
   SET moving_from = NULL
 WHERE tenant.tenant = %(tenant)s;

-- name: revoke_host_keys
-- Revoke the keys of a tenant, with an audit row for each.
WITH revoked AS (
    UPDATE vault.host_key AS revoked
       SET revoke_time = vault.clock()
     WHERE revoked.tenant = %(tenant)s
       AND revoked.revoke_time IS NULL
 RETURNING revoked.tenant, revoked.host_key_id, revoked.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT revoked.tenant, gen_random_uuid(), revoked.ceiling, revoked.host_key_id, 'host-key revoke', 'OK', 'by ' || %(login)s::text
      FROM revoked
)
SELECT count(*) AS rows
  FROM revoked;

-- name: lock_agents
-- From here on no writer can add a row that belongs to an agent.
SELECT agent.agent
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
 ORDER BY agent.agent
   FOR UPDATE;

-- name: lock_moving_conversations
SELECT conversation.agent
  FROM vault.conversation
 WHERE conversation.tenant = %(tenant)s
 ORDER BY conversation.agent, conversation.conversation_id, conversation.ceiling
   FOR UPDATE;

-- name: lock_sessions
SELECT session.agent
  FROM vault.session
 WHERE session.tenant = %(tenant)s
 ORDER BY session.session_id
   FOR UPDATE;

-- name: delete_tenant
DELETE FROM vault.tenant AS tenant
 WHERE tenant.tenant = %(tenant)s;
