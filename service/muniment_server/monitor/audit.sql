-- The relations that the queries of the auditor may name: see scope.sql.

-- name: audit
-- The audit rows of the host's tenant, up to the ceiling of its key, but for those of agents above it. The ceiling of an erased
-- agent is not known any more, so it is taken to be the highest.
SELECT audit.*
  FROM audit
 WHERE audit.tenant = %(tenant)s
   AND audit.level <= %(ceiling)s
   AND coalesce(
           (
               SELECT agent.ceiling
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent = audit.agent
           ),
           CASE WHEN audit.agent IS NULL THEN 1 ELSE 4 END
       ) <= %(ceiling)s;

-- name: agent
-- The names of the tenant's agents.
SELECT agent.tenant, agent.agent, agent.agent_id
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s;
