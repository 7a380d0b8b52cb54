-- The statements that the monitor itself runs for a session.

-- name: record_read
-- The audit row of one read. No row: the session is stale, and the answer must not be sent.
INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision, result_count)
SELECT %(tenant)s, %(change_id)s, session.agent, session.session_id, %(method)s, %(kind)s, 'OK',
       %(item_id)s::uuid, %(revision)s::integer, %(result_count)s
  FROM session;

-- name: record_refusal
-- The audit row of one refused call. No row: the session is stale.
INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, outcome)
SELECT %(tenant)s, %(change_id)s, session.agent, session.session_id, %(method)s, %(outcome)s
  FROM session;

-- name: get_own_session
-- The session itself, with the name of its agent.
SELECT session.session_id, agent.agent_id, session.conversation_id, session.label AS taint, session.create_time, session.expire_time,
       NULL::timestamptz AS close_time, NULL::smallint AS ceiling, session.read_only
  FROM session
       CROSS JOIN agent;

-- name: lock_writes
-- session: locked
-- From here to the commit, this transaction is the only writer of notes and blocks of its agent at its level.
-- A separate statement, because a statement that waits for a lock does not see the changes that it waited for.
SELECT (SELECT agent.agent_id FROM agent) AS agent_id
  FROM shelf
 WHERE shelf.tenant = %(tenant)s
   AND shelf.agent = (SELECT session.agent FROM session)
   FOR NO KEY UPDATE;
