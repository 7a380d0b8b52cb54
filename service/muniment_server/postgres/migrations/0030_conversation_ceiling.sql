-- A conversation has a ceiling of its own: the lower of its agent's and of that of the key that begins it. A key does not see the
-- conversations above its ceiling: what they are called is not taken. An agent says from which ceiling on keys know of it.
-- Servers that do not know that would open sessions without a ceiling: none may go on.

ALTER TABLE vault.agent ADD COLUMN known_from smallint NOT NULL DEFAULT 4;
ALTER TABLE vault.conversation ADD COLUMN ceiling smallint NOT NULL DEFAULT 4;
ALTER TABLE vault.session ADD COLUMN ceiling smallint NOT NULL DEFAULT 4;

UPDATE vault.agent SET known_from = ceiling;

-- A rebuild of the index that was killed may have left a conversation above the ceiling of its agent.
UPDATE vault.conversation
   SET ceiling = greatest(agent.ceiling, conversation.taint)
  FROM vault.agent
 WHERE agent.tenant = conversation.tenant
   AND agent.agent = conversation.agent;

UPDATE vault.session
   SET ceiling = conversation.ceiling
  FROM vault.conversation
 WHERE conversation.tenant = session.tenant
   AND conversation.agent = session.agent
   AND conversation.conversation_id = session.conversation_id;

ALTER TABLE vault.agent ADD CONSTRAINT known_from_is_a_level CHECK (known_from BETWEEN 1 AND ceiling);

ALTER TABLE vault.session DROP CONSTRAINT session_tenant_agent_conversation_id_fkey;
ALTER TABLE vault.conversation DROP CONSTRAINT conversation_pkey;

-- One by one: Citus adds no constraint together with another.
ALTER TABLE vault.conversation ADD CONSTRAINT ceiling_is_a_level CHECK (ceiling BETWEEN taint AND 4);
ALTER TABLE vault.conversation ADD CONSTRAINT conversation_pkey PRIMARY KEY (tenant, agent, conversation_id, ceiling);

ALTER TABLE vault.session
  ADD CONSTRAINT session_conversation_fkey FOREIGN KEY (tenant, agent, conversation_id, ceiling) REFERENCES vault.conversation
      ON DELETE CASCADE;

CREATE OR REPLACE VIEW muniment_control.session WITH (security_invoker = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time, session.token_hash,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE session.close_time IS NULL
   AND session.expire_time > vault.clock();

GRANT UPDATE (known_from) ON vault.agent TO muniment_control;
GRANT SELECT (known_from) ON vault.agent TO muniment_auditor;
GRANT SELECT (tenant, agent, session_id, ceiling) ON vault.session TO muniment_auditor;
