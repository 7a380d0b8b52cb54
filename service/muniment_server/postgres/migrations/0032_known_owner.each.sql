-- A session sees the shared blocks of those agents that keys from the ceiling of its conversation on know: a key that has
-- conversations with the reader need not know the owner.

SET LOCAL search_path = muniment_{level};

CREATE OR REPLACE VIEW session WITH (security_barrier = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE conversation.taint = {number}
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();

CREATE OR REPLACE VIEW link WITH (security_barrier = true) AS
SELECT session.tenant, session.session_id, block_link.owner, block_link.label, agent.agent_id AS owner_agent_id
  FROM session
       JOIN vault.block_link ON (block_link.tenant, block_link.consumer) = (session.tenant, session.agent)
       JOIN vault.agent ON (agent.tenant, agent.agent) = (block_link.tenant, block_link.owner)
 WHERE agent.known_from <= session.ceiling;
