-- What operators' commands share. All of them run as the owner.

-- name: find_tenant
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.name = %(name)s;

-- name: list_tenants
SELECT tenant.tenant
  FROM vault.tenant
 ORDER BY tenant.tenant;

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
