-- How the eraser deletes the rows of deleted agents, in batches. It serves no principal: its views show deleted agents only.
-- `address` is where a row is, in the tables of the tenant.

-- name: take_turn
-- Whether no other server erases now. Ends with the transaction.
SELECT pg_try_advisory_xact_lock(%(key)s) AS taken;

-- name: prepare_batch
-- Resolve unqualified names in one schema until the end of the transaction, and find rows by an index: it remembers which of
-- them are gone, and a scan of the table would look at all that are gone again for each batch.
SELECT set_config('search_path', %(schema)s, true) AS search_path,
       set_config('enable_seqscan', 'off', true) AS enable_seqscan,
       set_config('enable_bitmapscan', 'off', true) AS enable_bitmapscan;

-- name: deleted_agents
-- The deleted agents, up to a limit.
SELECT agent.tenant, agent.agent
  FROM agent
 ORDER BY agent.tenant, agent.agent
 LIMIT %(most)s;

-- name: is_deleted
-- Whether an agent has been deleted, and is not erased yet.
SELECT EXISTS (
           SELECT
             FROM agent
            WHERE (agent.tenant, agent.agent) = (%(tenant)s, %(agent)s)
       ) AS deleted;

-- name: erase_sessions
DELETE FROM session AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT session.address
             FROM session
            WHERE (session.tenant, session.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_conversations
DELETE FROM conversation AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT conversation.address
             FROM conversation
            WHERE (conversation.tenant, conversation.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_chunks
DELETE FROM erasable_chunk AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT erasable_chunk.address
             FROM erasable_chunk
            WHERE (erasable_chunk.tenant, erasable_chunk.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_stats
DELETE FROM erasable_stat AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT erasable_stat.address
             FROM erasable_stat
            WHERE (erasable_stat.tenant, erasable_stat.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_items
DELETE FROM erasable_item AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT erasable_item.address
             FROM erasable_item
            WHERE (erasable_item.tenant, erasable_item.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_revisions
DELETE FROM erasable_revision AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT erasable_revision.address
             FROM erasable_revision
            WHERE (erasable_revision.tenant, erasable_revision.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_storage
DELETE FROM erasable_storage AS erased
 WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
   AND erased.address = ANY(ARRAY(
           SELECT erasable_storage.address
             FROM erasable_storage
            WHERE (erasable_storage.tenant, erasable_storage.agent) = (%(tenant)s, %(agent)s)
            LIMIT %(most)s
       ));

-- name: erase_agent
-- The last row: foreign keys delete the write locks. The ceiling stays, for the audit rows.
WITH erased AS (
    DELETE FROM agent AS erased
     WHERE (erased.tenant, erased.agent) = (%(tenant)s, %(agent)s)
 RETURNING erased.tenant, erased.agent, erased.ceiling
)
INSERT INTO muniment_control.erased_agent AS kept (tenant, agent, ceiling)
SELECT erased.tenant, erased.agent, erased.ceiling
  FROM erased;
