-- What hosts do: the control role, its audit, and the auditor's view of everything done.

CREATE SCHEMA muniment_control;

CREATE TABLE muniment_control.audit (
    tenant      bigint      NOT NULL,
    agent       bigint,
    level       smallint    NOT NULL CONSTRAINT level_is_a_level CHECK (level BETWEEN 1 AND 4),
    event_id    uuid        NOT NULL,
    time        timestamptz NOT NULL DEFAULT vault.clock(),
    written_by  xid8        NOT NULL DEFAULT pg_current_xact_id(),
    host_key_id uuid,
    session_id  uuid,
    method      text        NOT NULL,
    outcome     text        NOT NULL,
    kind        smallint,
    item_id     uuid,
    revision    integer,
    reason      text,
    PRIMARY KEY (tenant, event_id)
);
CREATE INDEX audit_newest ON muniment_control.audit (tenant, time DESC, event_id DESC);

-- Open sessions at every level.
CREATE VIEW muniment_control.session WITH (security_invoker = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time, session.token_hash,
       0 AS fence -- UPDATE on it is the right to lock
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id)
 WHERE session.close_time IS NULL
   AND session.expire_time > vault.clock();

GRANT USAGE ON SCHEMA vault, muniment_control, muniment_public, muniment_internal, muniment_confidential, muniment_restricted
   TO muniment_control;
GRANT SELECT ON vault.migration, vault.host_key, vault.agent, vault.conversation, vault.session, vault.shared_block,
      vault.block_link, muniment_control.session
   TO muniment_control;
GRANT UPDATE (fence) ON muniment_control.session TO muniment_control;
GRANT INSERT, DELETE,
      UPDATE (display_name, language, memory_enabled, user_profile_enabled, memory_char_limit, user_char_limit,
              update_time, delete_time)
   ON vault.agent TO muniment_control;
GRANT INSERT, UPDATE (taint) ON vault.conversation TO muniment_control;
GRANT INSERT, UPDATE (close_time) ON vault.session TO muniment_control;
GRANT INSERT, DELETE ON vault.shared_block, vault.block_link TO muniment_control;
GRANT INSERT ON muniment_public.shelf, muniment_internal.shelf, muniment_confidential.shelf, muniment_restricted.shelf
   TO muniment_control;
GRANT INSERT ON muniment_control.audit, muniment_public.revision TO muniment_control;
GRANT INSERT, SELECT (item_id) ON muniment_public.item TO muniment_control;

CREATE SCHEMA muniment_auditor;

CREATE VIEW muniment_auditor.audit WITH (security_invoker = true) AS
SELECT tenant, agent, level, event_id, time, NULL::uuid AS host_key_id, session_id, method, outcome, kind, item_id,
       revision, result_count, NULL::text AS reason
  FROM muniment_public.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL
  FROM muniment_internal.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL
  FROM muniment_confidential.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL
  FROM muniment_restricted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, host_key_id, session_id, method, outcome, kind, item_id, revision, NULL::integer, reason
  FROM muniment_control.audit;

GRANT USAGE ON SCHEMA vault, muniment_auditor, muniment_public, muniment_internal, muniment_confidential,
      muniment_restricted, muniment_control
   TO muniment_auditor;
GRANT SELECT ON muniment_auditor.audit, muniment_public.audit, muniment_internal.audit, muniment_confidential.audit,
      muniment_restricted.audit, muniment_control.audit
   TO muniment_auditor;
GRANT SELECT (tenant, agent, agent_id) ON vault.agent TO muniment_auditor;
