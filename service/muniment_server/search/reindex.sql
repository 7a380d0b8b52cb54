-- Rebuilding the search index, and the counts of what is stored, as the owner, at the level of the search path.

-- name: use_schema
-- Until the end of the transaction, unqualified names belong to one schema.
SELECT set_config('search_path', %(schema)s, true);

-- name: list_agents_to_reindex
-- All agents, those of one tenant, or one agent.
SELECT agent.tenant, agent.agent, agent.agent_id
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
 WHERE (%(tenant_name)s::text IS NULL OR tenant.name = %(tenant_name)s)
   AND (%(agent_id)s::text IS NULL OR agent.agent_id = %(agent_id)s)
   AND agent.delete_time IS NULL
 ORDER BY agent.tenant, agent.agent;

-- name: open_reindexing
-- A session for the rebuild, deleted at its end: the statements that maintain the index need one. No row: no such agent.
WITH owner AS MATERIALIZED ( -- FOR SHARE: the mark of DeleteAgent waits
    SELECT agent.tenant, agent.agent
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent = %(agent)s
       AND agent.delete_time IS NULL
       FOR SHARE
),
conversation AS (
    INSERT INTO vault.conversation AS conversation (tenant, agent, conversation_id, ceiling, taint, trusted)
    SELECT owner.tenant, owner.agent, %(session_id)s::uuid::text, %(number)s, %(number)s, %(trusted)s
      FROM owner
 RETURNING conversation.tenant, conversation.agent, conversation.conversation_id, conversation.ceiling
)
INSERT INTO vault.session AS opened (tenant, agent, session_id, conversation_id, ceiling, level, trusted, token_hash, expire_time)
SELECT conversation.tenant, conversation.agent, %(session_id)s::uuid, conversation.conversation_id, conversation.ceiling, %(number)s, %(trusted)s,
       decode(md5(%(session_id)s::text), 'hex'), 'infinity'
  FROM conversation;

-- name: close_reindexing
DELETE FROM vault.conversation AS closed
 WHERE closed.tenant = %(tenant)s
   AND closed.agent = %(agent)s
   AND closed.conversation_id = %(session_id)s::uuid::text;

-- name: lock_all_items
-- Make writers of the agent's indexed items wait. Before clear_index: writers lock the item first, then its chunks.
SELECT item.tenant
  FROM item
 WHERE item.tenant = %(tenant)s
   AND item.agent = %(agent)s
   AND item.kind IN (1, 2, 4)
   AND item.delete_time IS NULL
 ORDER BY item.kind, item.name
   FOR NO KEY UPDATE;

-- name: clear_index
-- Delete the index of one agent. Its statistics are adjusted to the chunks that are left, not deleted: new items may be counted
-- and compacted meanwhile.
WITH before AS MATERIALIZED ( -- chunks and statistics at one moment, which is before the deletion also where steps see earlier ones
    SELECT stat.kind, stat.language, -stat.chunks AS chunks, -stat.stems AS stems, -stat.grams AS grams
      FROM stat
     WHERE stat.tenant = %(tenant)s
       AND stat.agent = %(agent)s
     UNION ALL
    SELECT chunk.kind, chunk.language, 1, chunk.stem_count, chunk.gram_count
      FROM chunk
     WHERE chunk.tenant = %(tenant)s
       AND chunk.agent = %(agent)s
),
deleted AS (
    DELETE FROM chunk
     WHERE chunk.tenant = %(tenant)s
       AND chunk.agent = %(agent)s
 RETURNING chunk.kind, chunk.language, chunk.stem_count, chunk.gram_count
),
delta AS (
    SELECT before.kind, before.language, before.chunks, before.stems, before.grams
      FROM before
     UNION ALL
    SELECT deleted.kind, deleted.language, -1, -deleted.stem_count, -deleted.gram_count
      FROM deleted
)
INSERT INTO stat AS counted (tenant, agent, kind, language, change_id, chunks, stems, grams)
SELECT %(tenant)s, %(agent)s, delta.kind, delta.language, %(session_id)s, sum(delta.chunks), sum(delta.stems), sum(delta.grams)
  FROM delta
 GROUP BY delta.kind, delta.language
HAVING (sum(delta.chunks), sum(delta.stems), sum(delta.grams)) <> (0, 0, 0);

-- name: remote_models
-- The models at addresses by which the agent has embeddings, or chunks that wait for them. Before clear_index, which deletes these.
SELECT DISTINCT remote.model AS number
  FROM remote_embedding AS remote
 WHERE remote.tenant = %(tenant)s
   AND remote.agent = %(agent)s;

-- name: queue_rebuilt
-- Queue chunks of some names for models at addresses, after queue_chunks. As missing, so that the agent is searched with the
-- built-in model until all have an embedding again.
INSERT INTO remote_embedding AS queued (tenant, agent, kind, name, change_id, number, model, is_missing)
SELECT %(tenant)s, own.agent, own.kind, own.name, own.change_id, own.piece, model.number, TRUE
  FROM meaning AS own
       CROSS JOIN unnest(%(models)s::integer[]) AS model (number)
 WHERE own.tenant = %(tenant)s
   AND own.agent = %(agent)s
   AND own.kind = %(kind)s
   AND own.name = ANY(%(names)s)
   AND own.change_id = ANY(%(changes)s::uuid[]) -- only chunks of this transaction: others may delete the rest meanwhile
    ON CONFLICT DO NOTHING;

-- name: count_storage
-- Adjust the counts of what one agent stores to its rows. The counts are not deleted, for the same reason.
WITH delta AS (
    SELECT (item.delete_time IS NULL)::integer AS items, (item.kind = 4)::integer AS versions,
           CASE WHEN item.kind = 4 THEN octet_length(item.content) ELSE 0 END AS bytes
      FROM item
     WHERE item.tenant = %(tenant)s
       AND item.agent = %(agent)s
     UNION ALL
    SELECT 0, 1, octet_length(revision.content)
      FROM revision
     WHERE revision.tenant = %(tenant)s
       AND revision.agent = %(agent)s
     UNION ALL
    SELECT -storage.items, -storage.versions, -storage.bytes
      FROM storage
     WHERE storage.tenant = %(tenant)s
       AND storage.agent = %(agent)s
)
INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
SELECT %(tenant)s, %(agent)s, %(session_id)s, sum(delta.items), sum(delta.versions), sum(delta.bytes)
  FROM delta
HAVING (sum(delta.items), sum(delta.versions), sum(delta.bytes)) <> (0, 0, 0);

-- name: lock_items
-- A batch of the indexed items after a given one, by kind and name.
SELECT item.kind, item.name, item.change_id, item.content, item.tags, item.author
  FROM item
 WHERE item.tenant = %(tenant)s
   AND item.agent = %(agent)s
   AND item.kind IN (1, 2, 4)
   AND (item.kind, item.name) > (%(after_kind)s, %(after_name)s)
   AND item.delete_time IS NULL
 ORDER BY item.kind, item.name
 LIMIT 200
   FOR NO KEY UPDATE;
