-- What operators do at the terminal, in the place of the owner.

-- name: lock_tenants
LOCK TABLE vault.tenant IN SHARE ROW EXCLUSIVE MODE;

-- name: find_tenant
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.name = %(name)s;

-- name: create_tenant
INSERT INTO vault.tenant AS tenant (name)
VALUES (%(name)s)
RETURNING tenant.tenant;

-- name: create_host_key
INSERT INTO vault.host_key AS host_key (tenant, host_key_id, key_hash, ceiling)
VALUES (%(tenant)s, %(host_key_id)s, %(key_hash)s, %(ceiling)s);

-- name: list_host_keys
SELECT tenant.name AS tenant, host_key.host_key_id, host_key.ceiling, host_key.create_time, host_key.revoke_time
  FROM vault.host_key
       JOIN vault.tenant USING (tenant)
 ORDER BY tenant.name, host_key.create_time, host_key.host_key_id;

-- name: revoke_host_key
UPDATE vault.host_key AS host_key
   SET revoke_time = vault.clock()
 WHERE host_key.host_key_id = %(host_key_id)s
   AND host_key.revoke_time IS NULL
RETURNING host_key.tenant;

-- name: find_agent
SELECT agent.tenant, agent.agent
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
 WHERE tenant.name = %(tenant_name)s
   AND agent.agent_id = %(agent_id)s;

-- name: look_at
-- Until the end of the transaction, unqualified names are those of one schema.
SELECT set_config('search_path', %(schema)s, true);

-- name: accepts_host_key
SELECT host_key.host_key_id
  FROM vault.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.key_hash = %(key_hash)s
   AND host_key.revoke_time IS NULL;
