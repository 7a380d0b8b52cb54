-- A host key may be bound to untrusted sessions, and a session to reading. Older servers would not know: none may go on.

ALTER TABLE vault.host_key
  ADD COLUMN trusted boolean NOT NULL DEFAULT TRUE, -- whether it may open trusted sessions
  ADD CONSTRAINT untrusted_keys_are_for_sessions CHECK (trusted OR only_service IS NOT DISTINCT FROM 'SessionService');

CREATE OR REPLACE VIEW muniment_control.host_key WITH (security_invoker = true) AS
SELECT host_key.tenant, host_key.host_key_id, host_key.key_hash, host_key.ceiling, host_key.only_service, host_key.trusted
  FROM vault.host_key
 WHERE host_key.revoke_time IS NULL
   AND host_key.freeze_time IS NULL
   AND (host_key.expire_time IS NULL OR host_key.expire_time > vault.clock());

ALTER TABLE vault.session ADD COLUMN read_only boolean NOT NULL DEFAULT FALSE; -- when it was opened, for good

CREATE OR REPLACE VIEW muniment_control.session WITH (security_invoker = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time, session.token_hash,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling, conversation.trusted, session.read_only
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE session.close_time IS NULL
   AND session.expire_time > vault.clock();

-- What a host does to a trusted session is in the chain of its label.
ALTER TABLE muniment_control.audit ADD COLUMN trusted boolean NOT NULL DEFAULT FALSE;

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
       (level + 4 * trusted::integer)::smallint
  FROM muniment_control.audit;
