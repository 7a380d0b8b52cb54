-- The audit log, as the auditor.

-- name: list_audit_events
-- One page, newest first. An erased agent is named by its number.
SELECT audit.event_id, audit.time, audit.level AS classification, audit.chain > 4 AS trusted, coalesce(agent.agent_id, '~' || audit.agent) AS agent_id, audit.session_id,
       audit.host_key_id, audit.method, audit.outcome, audit.kind, audit.item_id, audit.revision, audit.result_count, audit.reason
  FROM audit
       LEFT JOIN agent
              ON agent.agent = audit.agent
 WHERE (%(agent_id)s::text IS NULL OR coalesce(agent.agent_id, '~' || audit.agent) = %(agent_id)s)
   AND (%(session_id)s::uuid IS NULL OR audit.session_id = %(session_id)s)
   AND (%(start_time)s::timestamptz IS NULL OR audit.time >= %(start_time)s)
   AND (%(end_time)s::timestamptz IS NULL OR audit.time < %(end_time)s)
   AND (audit.time, audit.event_id) < (%(before_time)s::timestamptz, %(before_id)s::uuid)
 ORDER BY audit.time DESC, audit.event_id DESC
 LIMIT %(limit)s;

-- name: find_written
-- The item that one event is about, if it has been written. No row: it has not.
SELECT audit.item_id, audit.revision
  FROM audit
 WHERE audit.event_id = %(event_id)s
   AND audit.outcome = 'OK';

-- name: get_checkpoint
-- The last seal of one chain.
SELECT seal.number, seal.time, seal.event_count, seal.hash
  FROM seal
 WHERE seal.level = %(chain)s
 ORDER BY seal.number DESC
 LIMIT 1;
