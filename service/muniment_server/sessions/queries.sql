-- Conversations and sessions, as the control role. For a host, agents that its key does not know, conversations above the ceiling
-- of its key, conversations that the key does not know, and the sessions of all these do not exist. Statements that open, renew, raise
-- or reset a session read the key again, and compare the ceiling of the conversation, which never changes.
-- Locks are taken in this order: agent, conversation, session.

-- condition: is_known
-- Whether the key knows a conversation. A key for untrusted sessions knows those that such keys have begun, whose names begin with ~,
-- while they are not trusted.
(%(key_trusted)s OR NOT {of}.trusted AND left({of}.conversation_id, 1) = '~')

-- name: open_session
-- Open a session. Its conversation is the one of that name with the highest ceiling that the key reaches, or a new one. A taint
-- above the conversation's raises it, and so does a session that is not trusted; without a taint, the session has the conversation's.
-- No row: the key is invalid or does not reach the taint, or it knows no such agent. session_id NULL: the taint is above a ceiling, or
-- the conversation's label cannot flow to the one that is asked for; or, without a taint, it is trusted and the key is not. A call
-- that opens nothing raises nothing.
WITH owner AS MATERIALIZED ( -- FOR SHARE: the mark of DeleteAgent waits
    SELECT agent.agent, agent.agent_id, agent.ceiling
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id = %(agent_id)s
       AND agent.known_from <= %(ceiling)s
       AND agent.delete_time IS NULL
       AND EXISTS (
               SELECT
                 FROM host_key
                WHERE host_key.tenant = %(tenant)s
                  AND host_key.host_key_id = %(host_key_id)s
                  AND host_key.ceiling >= coalesce(%(taint)s::smallint, 1)
                  AND host_key.trusted >= %(trusted)s
           )
       FOR SHARE
),
reached AS MATERIALIZED (
    SELECT conversation.ceiling
      FROM vault.conversation
     WHERE conversation.tenant = %(tenant)s
       AND conversation.agent = (SELECT owner.agent FROM owner)
       AND conversation.conversation_id = %(conversation_id)s
       AND conversation.ceiling <= %(ceiling)s
     ORDER BY conversation.ceiling DESC
     LIMIT 1
),
wanted AS MATERIALIZED ( -- no taint counts as PUBLIC, which raises nothing: a reset may change what is read here
    SELECT owner.agent, coalesce(reached.ceiling, least(owner.ceiling, %(ceiling)s::smallint)) AS ceiling,
           coalesce(%(taint)s::smallint, 1::smallint) AS taint, %(trusted)s::boolean AS trusted
      FROM owner
           LEFT JOIN reached ON TRUE
),
marked AS ( -- DO UPDATE returns the current label, whatever the snapshot shows, and waits for writers below it
    INSERT INTO vault.conversation AS marked (tenant, agent, conversation_id, ceiling, taint, trusted, create_time)
    SELECT %(tenant)s, wanted.agent, %(conversation_id)s, wanted.ceiling, wanted.taint, wanted.trusted, vault.clock()
      FROM wanted
     WHERE wanted.ceiling >= wanted.taint
        ON CONFLICT (tenant, agent, conversation_id, ceiling) DO UPDATE
       SET taint   = CASE WHEN excluded.trusted AND NOT marked.trusted THEN marked.taint
                          ELSE greatest(marked.taint, excluded.taint) END,
           trusted = marked.trusted AND (excluded.trusted OR coalesce(%(taint)s::smallint < marked.taint, FALSE))
     WHERE marked.trusted <= %(key_trusted)s
 RETURNING marked.agent, marked.conversation_id, marked.ceiling, marked.taint, marked.trusted
),
opened AS (
    INSERT INTO vault.session AS opened (tenant, agent, session_id, conversation_id, ceiling, level, trusted, read_only, token_hash,
                                         create_time, expire_time)
    SELECT %(tenant)s, marked.agent, %(session_id)s::uuid, marked.conversation_id, marked.ceiling, marked.taint, marked.trusted,
           %(read_only)s, %(token_hash)s, vault.clock(), vault.clock() + %(ttl)s
      FROM marked
     WHERE marked.taint = coalesce(%(taint)s::smallint, marked.taint)
       AND marked.trusted = %(trusted)s
 RETURNING opened.session_id, opened.create_time, opened.expire_time
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, trusted, host_key_id, session_id, method, outcome)
    SELECT %(tenant)s, %(change_id)s, marked.agent,
           CASE WHEN opened.session_id IS NULL THEN greatest(marked.taint, %(ceiling)s::smallint) ELSE marked.taint END, -- as record_host_refusal
           marked.trusted AND opened.session_id IS NOT NULL, %(host_key_id)s, opened.session_id, 'OpenSession',
           CASE WHEN opened.session_id IS NULL THEN 'CONVERSATION_TAINTED' ELSE 'OK' END
      FROM marked
           LEFT JOIN opened ON TRUE
)
SELECT opened.session_id, owner.agent_id, marked.conversation_id, (2 * marked.taint - marked.trusted::integer)::smallint AS taint,
       opened.create_time, opened.expire_time,
       NULL::timestamptz AS close_time, wanted.ceiling, %(read_only)s::boolean AS read_only, owner.ceiling AS agent_ceiling
  FROM owner
       CROSS JOIN wanted
       LEFT JOIN marked ON TRUE
       LEFT JOIN opened ON TRUE;

-- name: get_session
-- Any session that a host has opened, up to the ceiling, including closed ones: those of UndeleteItem have the id of their
-- conversation.
SELECT session.session_id, agent.agent_id, session.conversation_id, (2 * conversation.taint - conversation.trusted::integer)::smallint AS taint,
       session.create_time, session.expire_time, session.close_time, session.ceiling, session.read_only
  FROM vault.session
       JOIN vault.conversation
            ON conversation.tenant = %(tenant)s
           AND (conversation.agent, conversation.conversation_id, conversation.ceiling)
               = (session.agent, session.conversation_id, session.ceiling)
       JOIN vault.agent
            ON agent.tenant = %(tenant)s
           AND agent.agent = session.agent
           AND agent.known_from <= %(ceiling)s
           AND agent.delete_time IS NULL
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s
   AND session.ceiling <= %(ceiling)s
   AND {is_known conversation}
   AND session.conversation_id <> session.session_id::text;

-- name: list_sessions
-- One page of the sessions that hosts have opened for an agent, up to the ceiling, newest first. No row: no such agent. Nulls: nothing more.
SELECT found.session_id, agent.agent_id, found.conversation_id, found.taint, found.create_time, found.expire_time, found.close_time,
       found.ceiling, found.read_only
  FROM vault.agent
       LEFT JOIN LATERAL (
           SELECT session.session_id, session.conversation_id, (2 * conversation.taint - conversation.trusted::integer)::smallint AS taint,
                  session.create_time, session.expire_time, session.close_time, session.ceiling, session.read_only
             FROM vault.session
                  JOIN vault.conversation
                       ON conversation.tenant = %(tenant)s
                      AND (conversation.agent, conversation.conversation_id, conversation.ceiling)
                          = (session.agent, session.conversation_id, session.ceiling)
            WHERE session.tenant = %(tenant)s
              AND session.agent = agent.agent
              AND session.ceiling <= %(ceiling)s
              AND {is_known conversation}
              AND session.conversation_id <> session.session_id::text
              AND (%(include_closed)s OR session.close_time IS NULL AND session.expire_time > vault.clock())
              AND (session.create_time, session.session_id) < (%(before_time)s::timestamptz, %(before_id)s::uuid)
            ORDER BY session.create_time DESC, session.session_id DESC
            LIMIT %(limit)s
       ) AS found ON TRUE
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = %(agent_id)s
   AND agent.known_from <= %(ceiling)s
 ORDER BY found.create_time DESC, found.session_id DESC;

-- name: renew_session
-- Prolong a session that is open or has expired. Its label is that of its conversation, which has not fallen since the session was
-- opened: a reset closes expired sessions too. Waits for the writers of the conversation.
-- No row: closed, or above the ceiling of the key.
WITH owner AS MATERIALIZED ( -- FOR SHARE: the mark of DeleteAgent waits
    SELECT agent.agent, agent.agent_id
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.delete_time IS NULL
       AND EXISTS (
               SELECT
                 FROM unclosed AS session
                WHERE session.tenant = %(tenant)s
                  AND session.session_id = %(session_id)s
                  AND session.agent = agent.agent
                  AND session.ceiling <= %(ceiling)s
                  AND agent.known_from <= %(ceiling)s
           )
       FOR SHARE
),
found AS MATERIALIZED (
    SELECT session.*
      FROM unclosed AS session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       AND session.agent = (SELECT owner.agent FROM owner)
       AND session.ceiling <= %(ceiling)s
       AND {is_known session}
       AND session.conversation_id <> session.session_id::text
       AND EXISTS (
               SELECT
                 FROM host_key
                WHERE host_key.tenant = %(tenant)s
                  AND host_key.host_key_id = %(host_key_id)s
           )
       FOR NO KEY UPDATE
),
renewed AS (
    UPDATE vault.session AS renewed
       SET expire_time = vault.clock() + %(ttl)s,
           close_time  = NULL,
           renew_time  = vault.clock()
      FROM found
     WHERE renewed.tenant = %(tenant)s
       AND renewed.session_id = found.session_id
 RETURNING renewed.expire_time
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, trusted, host_key_id, session_id, method, outcome)
    SELECT %(tenant)s, %(change_id)s, found.agent, found.taint, found.trusted, %(host_key_id)s, found.session_id, 'RenewSession', 'OK'
      FROM found
)
SELECT found.session_id, owner.agent_id, found.conversation_id, (2 * found.taint - found.trusted::integer)::smallint AS taint,
       found.create_time, renewed.expire_time, NULL::timestamptz AS close_time, found.ceiling, found.read_only
  FROM found
       CROSS JOIN renewed
       CROSS JOIN owner;

-- name: raise_taint
-- Raise the conversation of an open session to the least label that its own and the given one flow to, unless that is above its
-- ceiling. Waits for the writers before it.
-- No row: not open, or above the ceiling of the key.
WITH found AS MATERIALIZED ( -- locks the session too, so that the session that a reset opens is not raised
    SELECT session.*
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       AND session.ceiling <= %(ceiling)s
       AND {is_known session}
       AND EXISTS (
               SELECT
                 FROM host_key
                WHERE host_key.tenant = %(tenant)s
                  AND host_key.host_key_id = %(host_key_id)s
                  AND host_key.ceiling >= %(taint)s::smallint
                  AND host_key.trusted >= %(trusted)s
           )
       AND EXISTS (
               SELECT
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent = session.agent
                  AND agent.known_from <= %(ceiling)s
           )
       FOR NO KEY UPDATE
),
owner AS (
    SELECT agent.agent_id, agent.ceiling
      FROM found
           JOIN vault.agent
                ON agent.tenant = %(tenant)s
               AND agent.agent = found.agent
),
raised AS (
    UPDATE vault.conversation AS raised
       SET taint   = greatest(found.taint, %(taint)s::smallint),
           trusted = found.trusted AND %(trusted)s
      FROM found
     WHERE raised.tenant = %(tenant)s
       AND (raised.agent, raised.conversation_id, raised.ceiling) = (found.agent, found.conversation_id, found.ceiling)
       AND (found.taint < %(taint)s OR found.trusted AND NOT %(trusted)s)
       AND found.ceiling >= %(taint)s
 RETURNING raised.taint, raised.trusted
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, trusted, host_key_id, session_id, method, outcome, reason)
    SELECT %(tenant)s, %(change_id)s, found.agent, raised.taint, raised.trusted, %(host_key_id)s, found.session_id, 'RaiseTaint', 'OK', %(reason)s
      FROM found
           CROSS JOIN raised
)
SELECT found.session_id, owner.agent_id, found.conversation_id,
       (2 * greatest(found.taint, %(taint)s) - (found.trusted AND %(trusted)s)::integer)::smallint AS taint,
       found.create_time, found.expire_time, NULL::timestamptz AS close_time, found.ceiling, found.read_only, owner.ceiling AS agent_ceiling
  FROM found
       CROSS JOIN owner;

-- name: close_session
-- Close a session that is open; for a host, also one that has expired, after its expire_time, so that it cannot be renewed.
-- No row: closed.
WITH found AS MATERIALIZED (
    SELECT session.*, vault.clock() AS now, vault.clock() + interval '1 microsecond' AS later
      FROM unclosed AS session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       AND session.ceiling <= %(ceiling)s
       AND {is_known session}
       AND (session.expire_time > vault.clock() OR %(host_key_id)s::uuid IS NOT NULL)
       AND EXISTS (
               SELECT
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent = session.agent
                  AND agent.known_from <= %(ceiling)s
                  AND agent.delete_time IS NULL
           )
       FOR NO KEY UPDATE
),
closed AS (
    UPDATE vault.session AS closed
       SET close_time = CASE WHEN closed.expire_time <= found.now THEN found.later ELSE found.now END
      FROM found
     WHERE closed.tenant = %(tenant)s
       AND closed.session_id = found.session_id
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, trusted, host_key_id, session_id, method, outcome)
    SELECT %(tenant)s, %(change_id)s, found.agent, found.taint, found.trusted, %(host_key_id)s::uuid, found.session_id, 'CloseSession', 'OK'
      FROM found
)
SELECT found.session_id
  FROM found;

-- name: lock_session
-- The first step of ResetSession: waits for the writers and raises before it. No row: not open, or above the ceiling.
SELECT session.session_id
  FROM session
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s
   AND session.ceiling <= %(ceiling)s
   AND {is_known session}
   AND EXISTS (
           SELECT
             FROM vault.agent
            WHERE agent.tenant = %(tenant)s
              AND agent.agent = session.agent
              AND agent.known_from <= %(ceiling)s
       )
   FOR NO KEY UPDATE;

-- name: reset_session
-- The second step of ResetSession, under the lock of the first: it sees every session opened during the wait.
WITH found AS MATERIALIZED (
    SELECT session.*, vault.clock() AS now, vault.clock() + interval '1 microsecond' AS later
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       AND session.ceiling <= %(ceiling)s
       AND {is_known session}
       AND EXISTS (
               SELECT
                 FROM host_key
                WHERE host_key.tenant = %(tenant)s
                  AND host_key.host_key_id = %(host_key_id)s
                  AND host_key.trusted >= %(trusted)s
           )
       AND EXISTS (
               SELECT
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent = session.agent
                  AND agent.known_from <= %(ceiling)s
           )
),
closed AS ( -- an expired session is closed after its expire_time, which tells its host that the conversation was reset
    UPDATE vault.session AS closed
       SET close_time = CASE WHEN closed.expire_time <= found.now THEN found.later ELSE found.now END
      FROM found
     WHERE closed.tenant = %(tenant)s
       AND (closed.agent, closed.conversation_id, closed.ceiling) = (found.agent, found.conversation_id, found.ceiling)
       AND (closed.close_time IS NULL OR closed.close_time = closed.expire_time)
),
lowered AS (
    UPDATE vault.conversation AS lowered
       SET taint   = 1,
           trusted = %(trusted)s
      FROM found
     WHERE lowered.tenant = %(tenant)s
       AND (lowered.agent, lowered.conversation_id, lowered.ceiling) = (found.agent, found.conversation_id, found.ceiling)
),
opened AS (
    INSERT INTO vault.session AS opened (tenant, agent, session_id, conversation_id, ceiling, level, trusted, read_only, token_hash,
                                         create_time, expire_time)
    SELECT %(tenant)s, found.agent, %(new_session_id)s::uuid, found.conversation_id, found.ceiling, 1, %(trusted)s, found.read_only,
           %(token_hash)s, vault.clock(), vault.clock() + (old.expire_time - coalesce(old.renew_time, old.create_time))
      FROM found
           JOIN vault.session AS old
                ON old.tenant = %(tenant)s
               AND old.session_id = found.session_id
 RETURNING opened.agent, opened.session_id, opened.conversation_id, opened.ceiling, opened.read_only, opened.create_time,
           opened.expire_time
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, trusted, host_key_id, session_id, method, outcome, reason)
    SELECT %(tenant)s, event.event_id, event.agent, event.level, event.trusted, %(host_key_id)s::uuid, event.session_id, 'ResetSession',
           event.outcome, event.reason
      FROM (
               SELECT %(change_id)s::uuid AS event_id, found.agent, found.taint AS level, found.trusted, found.session_id, 'CLOSED' AS outcome,
                      %(reason)s AS reason
                 FROM found
                UNION ALL
               SELECT %(open_change_id)s::uuid, opened.agent, 1, %(trusted)s::boolean, opened.session_id, 'OK', NULL
                 FROM opened
           ) AS event
)
SELECT opened.session_id, agent.agent_id, opened.conversation_id, 2::smallint - %(trusted)s::integer AS taint, opened.create_time, opened.expire_time,
       NULL::timestamptz AS close_time, opened.ceiling, opened.read_only
  FROM opened
       JOIN vault.agent
            ON agent.tenant = %(tenant)s
           AND agent.agent = opened.agent;
