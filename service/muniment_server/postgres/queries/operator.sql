-- What operators do at the terminal, in the place of the owner.

-- name: lock_tenants
LOCK TABLE vault.tenant IN SHARE ROW EXCLUSIVE MODE;

-- name: find_tenant
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.name = %(name)s;

-- name: create_tenant
INSERT INTO vault.tenant AS tenant (name)
VALUES (%(name)s)
RETURNING tenant.tenant;

-- name: create_host_key
WITH created AS (
    INSERT INTO vault.host_key AS created (tenant, host_key_id, key_hash, ceiling)
    VALUES (%(tenant)s, %(host_key_id)s, %(key_hash)s, %(ceiling)s)
 RETURNING created.tenant, created.host_key_id, created.ceiling
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
SELECT created.tenant, gen_random_uuid(), created.ceiling, created.host_key_id, 'host-key create', 'OK', 'by ' || session_user
  FROM created;

-- name: list_host_keys
SELECT tenant.name AS tenant, host_key.host_key_id, host_key.ceiling, host_key.create_time, host_key.revoke_time
  FROM vault.host_key
       JOIN vault.tenant USING (tenant)
 ORDER BY tenant.name, host_key.create_time, host_key.host_key_id;

-- name: revoke_host_key
WITH revoked AS (
    UPDATE vault.host_key AS revoked
       SET revoke_time = vault.clock()
     WHERE revoked.host_key_id = %(host_key_id)s
       AND revoked.revoke_time IS NULL
 RETURNING revoked.tenant, revoked.host_key_id, revoked.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT revoked.tenant, gen_random_uuid(), revoked.ceiling, revoked.host_key_id, 'host-key revoke', 'OK', 'by ' || session_user
      FROM revoked
)
SELECT revoked.tenant
  FROM revoked;

-- name: find_agent
SELECT agent.tenant, agent.agent
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
 WHERE tenant.name = %(tenant_name)s
   AND agent.agent_id = %(agent_id)s;

-- name: look_at
-- Until the end of the transaction, unqualified names are those of one schema.
SELECT set_config('search_path', %(schema)s, true);

-- name: list_agents
-- All agents, those of one tenant, or one agent.
SELECT agent.tenant, agent.agent, agent.agent_id
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
 WHERE (%(tenant_name)s::text IS NULL OR tenant.name = %(tenant_name)s)
   AND (%(agent_id)s::text IS NULL OR agent.agent_id = %(agent_id)s)
 ORDER BY agent.tenant, agent.agent;

-- name: open_reindexing
-- A session of the operator's own, which its transaction ends: what keeps the index asks for one.
WITH conversation AS (
    INSERT INTO vault.conversation AS conversation (tenant, agent, conversation_id, taint)
    VALUES (%(tenant)s, %(agent)s, %(session_id)s::uuid::text, %(number)s)
 RETURNING conversation.tenant, conversation.agent, conversation.conversation_id
)
INSERT INTO vault.session AS opened (tenant, agent, session_id, conversation_id, token_hash, expire_time)
SELECT conversation.tenant, conversation.agent, %(session_id)s::uuid, conversation.conversation_id, decode(md5(%(session_id)s::text), 'hex'), 'infinity'
  FROM conversation;

-- name: close_reindexing
DELETE FROM vault.conversation AS closed
 WHERE closed.tenant = %(tenant)s
   AND closed.agent = %(agent)s
   AND closed.conversation_id = %(session_id)s::uuid::text;

-- name: lock_all_items
-- Let writers of what search finds of one agent, at the level of the search path, wait. Before clear_index: they take the item
-- first, then its chunks.
SELECT item.tenant
  FROM item
 WHERE item.tenant = %(tenant)s
   AND item.agent = %(agent)s
   AND item.kind IN (1, 2, 4)
   AND item.delete_time IS NULL
 ORDER BY item.kind, item.name
   FOR NO KEY UPDATE;

-- name: clear_index
-- Forget what search knows of one agent, at the level of the search path. Its counts are made to fit the chunks that are left,
-- and not deleted: of new items more may be counted and folded meanwhile.
WITH gone AS (
    DELETE FROM chunk AS gone
     WHERE gone.tenant = %(tenant)s
       AND gone.agent = %(agent)s
 RETURNING gone.kind, gone.language, gone.stem_count, gone.gram_count
),
moved AS (
    SELECT stat.kind, stat.language, -stat.chunks AS chunks, -stat.stems AS stems, -stat.grams AS grams
      FROM stat
     WHERE stat.tenant = %(tenant)s
       AND stat.agent = %(agent)s
     UNION ALL
    SELECT chunk.kind, chunk.language, 1, chunk.stem_count, chunk.gram_count
      FROM chunk
     WHERE chunk.tenant = %(tenant)s
       AND chunk.agent = %(agent)s
     UNION ALL
    SELECT gone.kind, gone.language, -1, -gone.stem_count, -gone.gram_count
      FROM gone
)
INSERT INTO stat AS counted (tenant, agent, kind, language, change_id, chunks, stems, grams)
SELECT %(tenant)s, %(agent)s, moved.kind, moved.language, %(session_id)s, sum(moved.chunks), sum(moved.stems), sum(moved.grams)
  FROM moved
 GROUP BY moved.kind, moved.language
HAVING (sum(moved.chunks), sum(moved.stems), sum(moved.grams)) <> (0, 0, 0);

-- name: lock_items
-- Some of the items that search finds, after one of them, by kind and name, at the level of the search path.
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

-- name: accepts_host_key
SELECT host_key.host_key_id
  FROM vault.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.key_hash = %(key_hash)s
   AND host_key.revoke_time IS NULL;
