-- A session is in the conversation of its name and ceiling.

SET LOCAL search_path = muniment_{level};

CREATE OR REPLACE VIEW session WITH (security_barrier = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time,
       0 AS fence -- UPDATE on it is the right to lock
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE conversation.taint = {number}
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();
