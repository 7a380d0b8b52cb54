-- Run as the owner, in the schema of one level.

-- name: remove_others
-- Remove what a batch of a tenant's chunks has of other models than one, or of all if it is null. What is locked is skipped, so
-- that no deletion deadlocks with it.
WITH other AS MATERIALIZED (
    SELECT remote.agent, remote.kind, remote.name, remote.change_id, remote.number, remote.model
      FROM remote_embedding AS remote
     WHERE remote.tenant = %(tenant)s
       AND (remote.agent, remote.kind, remote.name, remote.change_id, remote.number)
           > (%(agent)s, %(kind)s, %(name)s, %(change_id)s, %(number)s)
       AND (remote.agent, remote.kind, remote.name, remote.change_id, remote.number)
           <= (%(last_agent)s, %(last_kind)s, %(last_name)s, %(last_change_id)s, %(last_number)s)
       AND remote.model IS DISTINCT FROM %(model)s::integer
       FOR UPDATE SKIP LOCKED
)
DELETE FROM remote_embedding AS removed
 USING other
 WHERE removed.tenant = %(tenant)s
   AND (removed.agent, removed.kind, removed.name, removed.change_id, removed.number, removed.model)
       = (other.agent, other.kind, other.name, other.change_id, other.number, other.model)
   -- implied, and stated because it bounds what a hash join reads
   AND (removed.agent, removed.kind, removed.name, removed.change_id, removed.number)
       > (%(agent)s, %(kind)s, %(name)s, %(change_id)s, %(number)s)
   AND (removed.agent, removed.kind, removed.name, removed.change_id, removed.number)
       <= (%(last_agent)s, %(last_kind)s, %(last_name)s, %(last_change_id)s, %(last_number)s);
