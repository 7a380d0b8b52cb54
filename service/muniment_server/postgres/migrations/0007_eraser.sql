-- The eraser, which deletes the rows of deleted agents. It has no right on a table: its views show deleted agents only.

CREATE SCHEMA muniment_eraser;
CREATE INDEX agent_deleted ON vault.agent (tenant, agent) WHERE delete_time IS NOT NULL;

CREATE VIEW muniment_eraser.agent WITH (security_barrier = true) AS
SELECT agent.tenant, agent.agent
  FROM vault.agent
 WHERE agent.delete_time IS NOT NULL;

CREATE VIEW muniment_eraser.session WITH (security_barrier = true) AS
SELECT session.ctid AS address, session.tenant, session.agent, session.create_time, session.session_id
  FROM vault.session
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (session.tenant, session.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW muniment_eraser.conversation WITH (security_barrier = true) AS
SELECT conversation.ctid AS address, conversation.tenant, conversation.agent, conversation.conversation_id
  FROM vault.conversation
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (conversation.tenant, conversation.agent)
              AND agent.delete_time IS NOT NULL
       );

-- DeleteAgent gives the id away.
GRANT UPDATE (agent_id) ON vault.agent TO muniment_control;

GRANT USAGE ON SCHEMA muniment_eraser, muniment_public, muniment_internal, muniment_confidential, muniment_restricted
   TO muniment_eraser;
GRANT SELECT, DELETE ON muniment_eraser.agent, muniment_eraser.session, muniment_eraser.conversation TO muniment_eraser;
