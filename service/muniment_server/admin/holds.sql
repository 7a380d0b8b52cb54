-- Agents that are held, for an operator: what they have stays until the hold ends.

-- name: hold_agent
-- With an audit row. Waits for erasures that are being begun.
WITH held AS (
    UPDATE vault.agent AS held
       SET held = TRUE
     WHERE held.tenant = %(tenant)s
       AND held.agent = %(agent)s
       AND held.delete_time IS NULL
 RETURNING held.agent, held.ceiling
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, reason)
SELECT %(tenant)s, gen_random_uuid(), held.agent, held.ceiling, 'hold add', 'OK', 'by ' || %(login)s::text || ': ' || %(reason)s::text
  FROM held
RETURNING logged.agent;

-- name: stop_erasures
-- Those of an agent that is held. A batch that has begun is finished; the next one finds nothing.
DELETE FROM vault.erasure AS stopped
 WHERE stopped.tenant = %(tenant)s
   AND stopped.agent = %(agent)s;

-- name: free_agent
-- With an audit row. No row: it was not held.
WITH freed AS (
    UPDATE vault.agent AS freed
       SET held = FALSE
     WHERE freed.tenant = %(tenant)s
       AND freed.agent = %(agent)s
       AND freed.held
 RETURNING freed.agent, freed.ceiling
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, reason)
SELECT %(tenant)s, gen_random_uuid(), freed.agent, freed.ceiling, 'hold remove', 'OK', 'by ' || %(login)s::text
  FROM freed
RETURNING logged.agent;

-- name: list_held
-- All agents that are held, or those of one tenant, or that one agent. Since when and why is in the audit log, which is not
-- purged while an agent is held.
SELECT tenant.name AS tenant, agent.agent_id, agent.ceiling, hold.time AS since, hold.reason
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
       LEFT JOIN LATERAL (
           SELECT audit.time, audit.reason
             FROM muniment_control.audit
            WHERE audit.tenant = agent.tenant
              AND audit.agent = agent.agent
              AND audit.method = 'hold add'
              AND audit.outcome = 'OK'
            ORDER BY audit.time DESC
            LIMIT 1
       ) AS hold ON TRUE
 WHERE agent.held
   AND (%(tenant)s::bigint IS NULL OR agent.tenant = %(tenant)s)
   AND (%(agent)s::bigint IS NULL OR agent.agent = %(agent)s)
 ORDER BY tenant.name, agent.agent_id;
