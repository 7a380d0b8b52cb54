-- Authentication, and the refusals of hosts, as the control role.

-- name: find_host_keys
-- The keys of a tenant behind bearer tokens, valid or expired. Neither revoked nor frozen ones.
SELECT host_key.key_hash AS token_hash, (host_key.expire_time <= vault.clock()) IS TRUE AS expired, host_key.host_key_id,
       host_key.ceiling, host_key.only_service, host_key.trusted
  FROM vault.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.key_hash = ANY(%(token_hashes)s::bytea[])
   AND host_key.revoke_time IS NULL
   AND host_key.freeze_time IS NULL;

-- name: find_sessions
-- The sessions of a tenant behind bearer tokens, open or expired; none that was closed before it expired, or whose agent is
-- deleted. Closes those that have expired: they must not come back if the clock is set back. Waits for no writer.
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
SELECT session.token_hash, session.close_time IS NOT NULL OR session.expire_time <= vault.clock() AS expired, session.session_id,
       session.agent, (2 * conversation.taint - conversation.trusted::integer)::smallint AS taint, agent.calls_per_second,
       agent.memory_ttl, agent.passage_ttl, session.read_only
  FROM vault.session
       JOIN vault.conversation
            ON conversation.tenant = %(tenant)s
           AND (conversation.agent, conversation.conversation_id, conversation.ceiling)
               = (session.agent, session.conversation_id, session.ceiling)
       JOIN vault.agent
            ON agent.tenant = %(tenant)s
           AND agent.agent = session.agent
           AND agent.delete_time IS NULL
 WHERE session.tenant = %(tenant)s
   AND session.token_hash = ANY(%(token_hashes)s::bytea[])
   AND (session.close_time IS NULL OR session.close_time >= session.expire_time);

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
SELECT agent.agent_id, agent.ceiling, agent.held
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = ANY(%(agent_ids)s)
   AND agent.known_from <= %(ceiling)s
   AND agent.delete_time IS NULL
 ORDER BY agent.ceiling DESC
 LIMIT 1;
