-- Authentication, and the refusals of hosts, as the control role.

-- name: find_host_keys
-- The valid keys of a tenant behind bearer tokens.
SELECT host_key.key_hash AS token_hash, host_key.host_key_id, host_key.ceiling, host_key.only_service
  FROM host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.key_hash = ANY(%(token_hashes)s::bytea[]);

-- name: find_sessions
-- The open sessions of a tenant behind bearer tokens. Closes those that have expired: they must not come back if the clock is
-- set back. Waits for no writer.
WITH expired AS (
    SELECT expired.session_id
      FROM vault.session AS expired
     WHERE expired.tenant = %(tenant)s
       AND expired.token_hash = ANY(%(token_hashes)s::bytea[])
       AND expired.close_time IS NULL
       AND expired.expire_time <= vault.clock()
       FOR NO KEY UPDATE SKIP LOCKED
),
closed AS (
    UPDATE vault.session AS closed
       SET close_time = closed.expire_time
      FROM expired
     WHERE closed.tenant = %(tenant)s
       AND closed.session_id = expired.session_id
)
SELECT session.token_hash, session.session_id, session.agent, session.taint, agent.calls_per_second
  FROM session
       JOIN vault.agent
            ON agent.tenant = %(tenant)s
           AND agent.agent = session.agent
 WHERE session.tenant = %(tenant)s
   AND session.token_hash = ANY(%(token_hashes)s::bytea[]);

-- name: record_host_refusal
-- The audit row of one refused call of a host, at the ceiling of its key, or at the level that was asked for if that is higher:
-- keys that do not reach the caller's ceiling do not see it. It names no agent that does not exist for the host.
INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, session_id, method, outcome)
SELECT %(tenant)s, %(change_id)s,
       coalesce(
           (
               SELECT agent.agent
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent_id = %(agent_id)s
                  AND agent.known_from <= %(ceiling)s
           ),
           (
               SELECT session.agent
                 FROM vault.session
                      JOIN vault.agent
                           ON agent.tenant = %(tenant)s
                          AND agent.agent = session.agent
                          AND agent.known_from <= %(ceiling)s
                          AND agent.delete_time IS NULL
                WHERE session.tenant = %(tenant)s
                  AND session.session_id = %(session_id)s::uuid
                  AND session.ceiling <= %(ceiling)s
           )
       ),
       greatest(%(level)s::smallint, %(ceiling)s::smallint), %(host_key_id)s, %(session_id)s::uuid, %(method)s, %(outcome)s;

-- name: find_known_agent
-- The agent with the highest ceiling among those of the given ids that the key knows. No row: it knows none.
SELECT agent.agent_id, agent.ceiling
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = ANY(%(agent_ids)s)
   AND agent.known_from <= %(ceiling)s
   AND agent.delete_time IS NULL
 ORDER BY agent.ceiling DESC
 LIMIT 1;
