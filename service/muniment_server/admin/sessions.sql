-- Closes sessions and rejects releases, for an operator.

-- name: sessions_of_host_key
-- The open sessions that a host key has opened or renewed, by its audit rows. No session lasts longer than 30 days unless renewed.
SELECT session.tenant, session.session_id
  FROM vault.host_key
       JOIN muniment_control.audit USING (tenant, host_key_id)
       JOIN vault.session USING (tenant, session_id)
 WHERE host_key.host_key_id = %(host_key_id)s
   AND audit.method IN ('OpenSession', 'RenewSession', 'ResetSession')
   AND audit.outcome = 'OK'
   AND audit.time > vault.clock() - interval '31 days'
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();

-- name: close_sessions
-- Close the open sessions of all tenants, of one tenant or of one agent, or those of some ids, with an audit row for each. Expired
-- ones are marked, so that no host opens them again: after a restore, their taint may be below what their models have read.
WITH expired AS (
    UPDATE vault.session AS expired
       SET close_time = vault.clock() + interval '1 microsecond'
     WHERE (expired.close_time IS NULL OR expired.close_time = expired.expire_time)
       AND expired.expire_time <= vault.clock()
       AND (%(tenant)s::bigint IS NULL OR expired.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR expired.agent = %(agent)s)
       AND (%(session_ids)s::uuid[] IS NULL OR expired.session_id = ANY(%(session_ids)s))
),
closed AS (
    UPDATE vault.session AS closed
       SET close_time = vault.clock()
     WHERE closed.close_time IS NULL
       AND closed.expire_time > vault.clock()
       AND (%(tenant)s::bigint IS NULL OR closed.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR closed.agent = %(agent)s)
       AND (%(session_ids)s::uuid[] IS NULL OR closed.session_id = ANY(%(session_ids)s))
 RETURNING closed.tenant, closed.agent, closed.session_id, closed.conversation_id, closed.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, trusted, session_id, method, outcome, reason)
    SELECT closed.tenant, gen_random_uuid(), closed.agent, conversation.taint, conversation.trusted, closed.session_id, %(command)s,
           'CLOSED', 'by ' || %(login)s::text
      FROM closed
           JOIN vault.conversation USING (tenant, agent, conversation_id, ceiling)
)
SELECT count(*) AS rows
  FROM closed;

-- name: reject_releases
-- Reject the open releases of all tenants, with an audit row for each. One that is written already, which only the audit log says,
-- stays open: the next call that approves or rejects it finds that out.
WITH rejected AS (
    UPDATE vault.release AS rejected
       SET state = 3, refusal = ''
     WHERE rejected.state = 1
       AND NOT EXISTS (
               SELECT
                 FROM muniment_auditor.audit
                WHERE (audit.tenant, audit.event_id) = (rejected.tenant, rejected.release_id)
                  AND audit.outcome = 'OK'
           )
 RETURNING rejected.tenant, rejected.agent, rejected.release_id, rejected.source, rejected.kind, rejected.item_id, rejected.revision
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, kind, item_id, revision, reason)
    SELECT rejected.tenant, gen_random_uuid(), rejected.agent, (rejected.source + 1) / 2, %(command)s, 'OK', rejected.kind,
           rejected.item_id, rejected.revision, 'release ' || rejected.release_id || ', by ' || %(login)s::text
      FROM rejected
)
SELECT count(*) AS rows
  FROM rejected;

-- name: distrust_conversations
-- Let no conversation of any tenant be trusted, with an audit row for each: after a restore, what its model has read may be
-- untrusted.
WITH distrusted AS (
    UPDATE vault.conversation AS distrusted
       SET trusted = FALSE
     WHERE distrusted.trusted
 RETURNING distrusted.tenant, distrusted.agent, distrusted.taint
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, reason)
    SELECT distrusted.tenant, gen_random_uuid(), distrusted.agent, distrusted.taint, %(command)s, 'OK',
           'by ' || %(login)s::text || ': a conversation is no longer trusted'
      FROM distrusted
)
SELECT count(*) AS rows
  FROM distrusted;
