-- The relations that the queries of the auditor may name: see scope.sql.

-- name: audit
-- The audit rows of the host's tenant, up to the ceiling of its key.
SELECT audit.*
  FROM audit
 WHERE audit.tenant = %(tenant)s
   AND audit.level <= %(ceiling)s;

-- name: agent
-- The names of the tenant's agents.
SELECT agent.tenant, agent.agent, agent.agent_id
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s;
