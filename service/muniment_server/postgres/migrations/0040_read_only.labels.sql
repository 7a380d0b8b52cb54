-- Whether a session may only read. Writes do not find it then.

SET LOCAL search_path = muniment_{label};

-- Its FROM fixes the order of locks: conversation, session.
CREATE OR REPLACE VIEW session WITH (security_barrier = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling, {rank}::smallint AS label, session.read_only
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE conversation.taint = {number}
   AND conversation.trusted = {trusted}
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();
