-- The relations that the queries of the auditor may name: see scope.sql.

-- name: audit
-- The audit rows of the host's tenant, up to the ceiling of its key. The first rule that applies says which ceiling a key needs:
-- 1. an event of a session that is stored: that of its conversation, and to know the agent;
-- 2. another event of an agent: to know it, for the key that did it; the agent's, for others;
-- 3. an event of an erased agent: the one that the agent had;
-- 4. an event without an agent: none. If nothing is known of the agent (erased before ceilings were kept): the highest.
SELECT audit.*
  FROM audit
 WHERE audit.tenant = %(tenant)s
   AND audit.level <= %(ceiling)s
   AND coalesce(
           (
               SELECT greatest(session.ceiling, agent.known_from)
                 FROM vault.session
                      JOIN vault.agent
                           ON agent.tenant = %(tenant)s
                          AND agent.agent = session.agent
                WHERE session.tenant = %(tenant)s
                  AND session.session_id = audit.session_id
                  AND session.agent = audit.agent
           ),
           (
               SELECT CASE WHEN audit.host_key_id = %(host_key_id)s THEN agent.known_from ELSE agent.ceiling END
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent = audit.agent
           ),
           (
               SELECT erased_agent.ceiling
                 FROM muniment_control.erased_agent
                WHERE erased_agent.tenant = %(tenant)s
                  AND erased_agent.agent = audit.agent
           ),
           CASE WHEN audit.agent IS NULL THEN 1 ELSE 4 END
       ) <= %(ceiling)s;

-- name: seal
-- The seals of the tenant's audit log. They cover events of all agents, so they are for keys with the highest ceiling.
SELECT seal.level, seal.number, seal.time, seal.event_count, seal.hash
  FROM muniment_auditor.seal
 WHERE seal.tenant = %(tenant)s
   AND %(ceiling)s::smallint = 4;

-- name: agent
-- The names of the tenant's agents.
SELECT agent.tenant, agent.agent, agent.agent_id
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s;
