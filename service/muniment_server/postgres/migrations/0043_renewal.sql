-- RenewSession prolongs sessions, also expired ones. Older servers would have the session that a reset opens last as long as the one
-- before it has in all: none may go on.

ALTER TABLE vault.session ADD COLUMN renew_time timestamptz; -- of the last renewal

-- The sessions that are open or have only expired: these have no close_time, or their expire_time. Closed ones never have that.
-- Its FROM fixes the order of locks: conversation, session.
CREATE VIEW muniment_control.unclosed WITH (security_invoker = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling, conversation.trusted, session.read_only
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE session.close_time IS NULL
    OR session.close_time = session.expire_time;

GRANT SELECT, UPDATE (fence) ON muniment_control.unclosed TO muniment_control;
GRANT UPDATE (expire_time, renew_time) ON vault.session TO muniment_control;
