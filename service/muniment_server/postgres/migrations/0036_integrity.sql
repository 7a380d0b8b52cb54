-- Whether all that a conversation has seen is trusted. What exists is not: nothing was asked when it began.

ALTER TABLE vault.conversation ADD COLUMN trusted boolean NOT NULL DEFAULT FALSE;
ALTER TABLE vault.session ADD COLUMN trusted boolean NOT NULL DEFAULT FALSE; -- when it was opened, for good

CREATE OR REPLACE VIEW muniment_control.session WITH (security_invoker = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time, session.token_hash,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling, conversation.trusted
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE session.close_time IS NULL
   AND session.expire_time > vault.clock();

GRANT UPDATE (trusted) ON vault.conversation TO muniment_control;

-- Chains of seals have the number of their level; those of trusted labels, 4 more.
ALTER TABLE muniment_auditor.seal DROP CONSTRAINT level_is_a_level;
ALTER TABLE muniment_auditor.seal ADD CONSTRAINT level_is_a_chain CHECK (level BETWEEN 1 AND 8);
ALTER TABLE muniment_auditor.sealed_event DROP CONSTRAINT level_is_a_level;
ALTER TABLE muniment_auditor.sealed_event ADD CONSTRAINT level_is_a_chain CHECK (level BETWEEN 1 AND 8);

CREATE OR REPLACE VIEW muniment_auditor.audit WITH (security_invoker = true) AS
SELECT tenant, agent, level, event_id, time, NULL::uuid AS host_key_id, session_id, method, outcome, kind, item_id,
       revision, result_count, NULL::text AS reason, false AS by_host, level AS chain
  FROM muniment_public.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       level
  FROM muniment_internal.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       level
  FROM muniment_confidential.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       level
  FROM muniment_restricted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       (level + 4)::smallint
  FROM muniment_public_trusted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       (level + 4)::smallint
  FROM muniment_internal_trusted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       (level + 4)::smallint
  FROM muniment_confidential_trusted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false,
       (level + 4)::smallint
  FROM muniment_restricted_trusted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, host_key_id, session_id, method, outcome, kind, item_id, revision, NULL::integer, reason, true,
       level
  FROM muniment_control.audit;
