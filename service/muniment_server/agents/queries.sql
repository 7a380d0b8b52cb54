-- Agents, as the control role. For a host, agents that its key does not know do not exist: those whose `known_from` is above its
-- ceiling. What changes an agent needs a key that reaches the ceiling of the agent.
-- Locks are taken in this order: tenant, agent, conversation, session.

-- name: lock_tenant
-- The first step of a change of limits: waits for others that change those of the tenant's agents.
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s
   FOR NO KEY UPDATE;

-- name: given_limits
-- What the tenant may give to its agents, what they all have, also those above the ceiling, and what one agent has.
-- No row: the tenant has no limits.
WITH most AS MATERIALIZED (
    SELECT tenant.max_agents, tenant.calls_per_second, tenant.max_items, tenant.max_bytes
      FROM vault.tenant
     WHERE tenant.tenant = %(tenant)s
       AND num_nonnulls(tenant.max_agents, tenant.calls_per_second, tenant.max_items, tenant.max_bytes) > 0
),
given AS ( -- adds nothing up for a tenant without limits
    SELECT count(*) AS agents, sum(agent.calls_per_second) AS calls_per_second, sum(agent.max_items) AS max_items,
           sum(agent.max_bytes) AS max_bytes
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.delete_time IS NULL
       AND EXISTS (SELECT FROM most)
),
own AS (
    SELECT sum(agent.calls_per_second) AS calls_per_second, sum(agent.max_items) AS max_items, sum(agent.max_bytes) AS max_bytes
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id = %(agent_id)s
       AND agent.ceiling <= %(ceiling)s
       AND agent.delete_time IS NULL
)
SELECT bound.name, bound.most, coalesce(bound.given, 0) AS given, coalesce(bound.own, 0)::bigint AS own
  FROM most
       CROSS JOIN given
       CROSS JOIN own
       CROSS JOIN LATERAL (
           VALUES ('agents', most.max_agents, given.agents, 0),
                  ('calls_per_second', most.calls_per_second, given.calls_per_second, own.calls_per_second),
                  ('max_items', most.max_items, given.max_items, own.max_items),
                  ('max_bytes', most.max_bytes, given.max_bytes, own.max_bytes)
       ) AS bound (name, most, given, own);

-- name: create_agent
-- Create an agent with its eight write locks and its first blocks, and an audit row for each. No row: the id is taken.
WITH new AS (
    INSERT INTO vault.agent AS new (tenant, agent, agent_id, display_name, language, ceiling, known_from, memory_enabled,
                                        user_profile_enabled, memory_char_limit, user_char_limit, calls_per_second, max_items,
                                        max_bytes, max_revisions, memory_ttl, passage_ttl, create_time, update_time)
    SELECT %(tenant)s, %(agent)s, %(agent_id)s, %(display_name)s, %(language)s, %(agent_ceiling)s,
           least(%(known_from)s::smallint, %(agent_ceiling)s::smallint), %(memory_enabled)s,
           %(user_profile_enabled)s, %(memory_char_limit)s, %(user_char_limit)s, %(calls_per_second)s, %(max_items)s,
           %(max_bytes)s, %(max_revisions)s, %(memory_ttl)s, %(passage_ttl)s, vault.clock(), vault.clock()
        ON CONFLICT DO NOTHING
 RETURNING new.agent, new.agent_id, new.display_name, new.language, new.ceiling, new.known_from,
           new.memory_enabled, new.user_profile_enabled, new.memory_char_limit, new.user_char_limit, new.calls_per_second, new.max_items, new.max_bytes,
           new.max_revisions, new.memory_ttl, new.passage_ttl, new.held, new.create_time, new.update_time
),
public_lock AS (
    INSERT INTO muniment_public.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
internal_lock AS (
    INSERT INTO muniment_internal.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
confidential_lock AS (
    INSERT INTO muniment_confidential.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
restricted_lock AS (
    INSERT INTO muniment_restricted.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
public_trusted_lock AS (
    INSERT INTO muniment_public_trusted.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
internal_trusted_lock AS (
    INSERT INTO muniment_internal_trusted.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
confidential_trusted_lock AS (
    INSERT INTO muniment_confidential_trusted.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
restricted_trusted_lock AS (
    INSERT INTO muniment_restricted_trusted.shelf AS write_lock (tenant, agent)
    SELECT %(tenant)s, new.agent
      FROM new
),
block AS MATERIALIZED (
    SELECT block.*
      FROM unnest(%(labels)s::text[], %(contents)s::text[], %(item_ids)s::uuid[], %(change_ids)s::uuid[])
           AS block (label, content, item_id, change_id)
),
new_item AS (
    INSERT INTO muniment_public.item AS new_item (tenant, agent, kind, name, item_id, change_id, content, create_time, update_time)
    SELECT %(tenant)s, new.agent, 3, block.label, block.item_id, block.change_id, block.content, vault.clock(), vault.clock()
      FROM new
           CROSS JOIN block
),
new_revision AS (
    INSERT INTO muniment_public.revision AS new_revision (tenant, agent, item_id, revision, change_id, kind, name, content, tags, update_time)
    SELECT %(tenant)s, new.agent, block.item_id, 1, block.change_id, 3, block.label, block.content, '{}', vault.clock()
      FROM new
           CROSS JOIN block
),
counted AS (
    INSERT INTO muniment_public.storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, new.agent, %(change_id)s::uuid, count(*), count(*), sum(octet_length(block.content))
      FROM new
           CROSS JOIN block
     GROUP BY new.agent
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision)
    SELECT %(tenant)s, event.event_id, new.agent, 1, %(host_key_id)s::uuid, 'CreateAgent', 'OK', event.kind, event.item_id, event.revision
      FROM new
           CROSS JOIN (
               SELECT %(change_id)s::uuid AS event_id, NULL::smallint AS kind, NULL::uuid AS item_id, NULL::integer AS revision
                UNION ALL
               SELECT block.change_id, 3, block.item_id, 1
                 FROM block
           ) AS event
)
SELECT new.agent_id, new.display_name, new.language, new.ceiling, new.known_from, new.memory_enabled,
       new.user_profile_enabled, new.memory_char_limit, new.user_char_limit, new.calls_per_second, new.max_items, new.max_bytes,
       new.max_revisions, new.memory_ttl, new.passage_ttl, new.held, new.create_time, new.update_time
  FROM new;

-- name: get_agent
SELECT agent.agent_id, agent.display_name, agent.language, agent.ceiling, agent.known_from, agent.memory_enabled, agent.user_profile_enabled,
       agent.memory_char_limit, agent.user_char_limit, agent.calls_per_second, agent.max_items, agent.max_bytes,
       agent.max_revisions, agent.memory_ttl, agent.passage_ttl, agent.held, agent.create_time, agent.update_time
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = %(agent_id)s
   AND agent.known_from <= %(ceiling)s;

-- name: get_{label}_storage
-- What an agent stores with one label. A query for each: one for all would wait for locks above the agent's ceiling.
-- No row: no such agent.
SELECT {rank} AS label, coalesce(sum(storage_size.items), 0)::bigint AS items,
       coalesce(sum(storage_size.bytes), 0)::bigint AS bytes
  FROM vault.agent
       LEFT JOIN muniment_{label}.storage_size
            ON storage_size.tenant = %(tenant)s
           AND storage_size.agent = agent.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = %(agent_id)s
   AND agent.known_from <= %(ceiling)s
 GROUP BY agent.agent;

-- name: list_agents
-- One page by id.
SELECT agent.agent_id, agent.display_name, agent.language, agent.ceiling, agent.known_from, agent.memory_enabled, agent.user_profile_enabled,
       agent.memory_char_limit, agent.user_char_limit, agent.calls_per_second, agent.max_items, agent.max_bytes,
       agent.max_revisions, agent.memory_ttl, agent.passage_ttl, agent.held, agent.create_time, agent.update_time
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id > %(after)s
   AND agent.known_from <= %(ceiling)s
   AND agent.delete_time IS NULL
 ORDER BY agent.agent_id
 LIMIT %(limit)s;

-- name: update_agent
-- Change what is not null. No row: no such agent.
WITH updated AS (
    UPDATE vault.agent AS updated
       SET display_name         = coalesce(%(display_name)s, updated.display_name),
           language             = coalesce(%(language)s, updated.language),
           known_from           = least(coalesce(%(known_from)s::smallint, updated.known_from), updated.ceiling),
           memory_enabled       = coalesce(%(memory_enabled)s, updated.memory_enabled),
           user_profile_enabled = coalesce(%(user_profile_enabled)s, updated.user_profile_enabled),
           memory_char_limit    = coalesce(%(memory_char_limit)s, updated.memory_char_limit),
           user_char_limit      = coalesce(%(user_char_limit)s, updated.user_char_limit),
           calls_per_second     = coalesce(%(calls_per_second)s, updated.calls_per_second),
           max_items            = coalesce(%(max_items)s, updated.max_items),
           max_bytes            = coalesce(%(max_bytes)s, updated.max_bytes),
           max_revisions        = coalesce(%(max_revisions)s, updated.max_revisions),
           memory_ttl           = coalesce(%(memory_ttl)s, updated.memory_ttl),
           passage_ttl          = coalesce(%(passage_ttl)s, updated.passage_ttl),
           update_time          = vault.clock()
     WHERE updated.tenant = %(tenant)s
       AND updated.agent_id = %(agent_id)s
       AND updated.ceiling <= %(ceiling)s
       AND updated.delete_time IS NULL
 RETURNING updated.agent, updated.agent_id, updated.display_name, updated.language, updated.ceiling, updated.known_from,
           updated.memory_enabled, updated.user_profile_enabled, updated.memory_char_limit, updated.user_char_limit, updated.calls_per_second, updated.max_items, updated.max_bytes,
           updated.max_revisions, updated.memory_ttl, updated.passage_ttl, updated.held, updated.create_time, updated.update_time
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome)
    SELECT %(tenant)s, %(change_id)s, updated.agent, 1, %(host_key_id)s, 'UpdateAgent', 'OK'
      FROM updated
)
SELECT updated.agent_id, updated.display_name, updated.language, updated.ceiling, updated.known_from, updated.memory_enabled,
       updated.user_profile_enabled, updated.memory_char_limit, updated.user_char_limit, updated.calls_per_second, updated.max_items, updated.max_bytes,
       updated.max_revisions, updated.memory_ttl, updated.passage_ttl, updated.held, updated.create_time, updated.update_time
  FROM updated;

-- name: mark_agent
-- The first step of DeleteAgent: waits for sessions that are being opened, and refuses later ones. It does not change the id
-- yet: that would wait for the agent's writers, whose sessions only the second step waits for.
UPDATE vault.agent AS marked
   SET delete_time = vault.clock()
 WHERE marked.tenant = %(tenant)s
   AND marked.agent_id = %(agent_id)s
   AND marked.ceiling <= %(ceiling)s
   AND NOT marked.held
RETURNING marked.agent;

-- name: lock_conversations
-- The second step of DeleteAgent: waits for the agent's writers. Conversations without an open session have none.
SELECT conversation.conversation_id
  FROM vault.conversation
 WHERE conversation.tenant = %(tenant)s
   AND conversation.agent = (
           SELECT agent.agent
             FROM vault.agent
            WHERE agent.tenant = %(tenant)s
              AND agent.agent_id = %(agent_id)s
              AND agent.ceiling <= %(ceiling)s
       )
   AND EXISTS (
           SELECT
             FROM vault.session
            WHERE session.tenant = %(tenant)s
              AND (session.agent, session.conversation_id, session.ceiling)
                  = (conversation.agent, conversation.conversation_id, conversation.ceiling)
              AND session.close_time IS NULL
              AND session.expire_time > vault.clock()
       )
 ORDER BY conversation.conversation_id, conversation.ceiling
   FOR UPDATE;

-- name: delete_agent
-- The last step of DeleteAgent: frees the id, closes the sessions and ends the sharing. The eraser deletes the rest later. The
-- new id is not a valid one; the audit log shows it, as it does once the agent is erased. No row: no such agent.
WITH deleted AS (
    UPDATE vault.agent AS deleted
       SET agent_id = '~' || deleted.agent
     WHERE deleted.tenant = %(tenant)s
       AND deleted.agent_id = %(agent_id)s
       AND deleted.ceiling <= %(ceiling)s
       AND deleted.delete_time IS NOT NULL
 RETURNING deleted.agent
),
closed AS (
    UPDATE vault.session AS closed
       SET close_time = vault.clock()
      FROM deleted
     WHERE closed.tenant = %(tenant)s
       AND closed.agent = deleted.agent
       AND closed.close_time IS NULL
       AND closed.expire_time > vault.clock()
),
unshared AS (
    DELETE FROM vault.shared_block AS unshared
     USING deleted
     WHERE unshared.tenant = %(tenant)s
       AND unshared.owner = deleted.agent
),
detached AS (
    DELETE FROM vault.block_link AS detached
     USING deleted
     WHERE detached.tenant = %(tenant)s
       AND detached.consumer = deleted.agent
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome)
    SELECT %(tenant)s, %(change_id)s, deleted.agent, 1, %(host_key_id)s, 'DeleteAgent', 'OK'
      FROM deleted
)
SELECT deleted.agent
  FROM deleted;

-- name: lock_erased
-- Waits for releases that begin to write, and for whoever holds the agent; without an agent_id, all agents. A statement that waits
-- would not see what it waited for.
SELECT agent.agent
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND (%(agent_id)s::text IS NULL OR agent.agent_id = %(agent_id)s)
   AND agent.ceiling <= %(ceiling)s
   AND agent.delete_time IS NULL
 ORDER BY agent.agent -- in one order, or two that erase of all agents deadlock
   FOR NO KEY UPDATE;

-- name: begin_erasure
-- The first step of EraseItems, under the lock of lock_erased: lets the eraser see the agent's items of one kind, up to the ceiling
-- of the agent; without an agent_id, those of all agents. Ends what writes a release of that kind, which could bring a text back.
-- What a killed server has left is forgotten after a day. No row: no such agent, or it is held.
WITH owner AS MATERIALIZED (
    SELECT agent.agent, agent.ceiling
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND (%(agent_id)s::text IS NULL OR agent.agent_id = %(agent_id)s)
       AND agent.ceiling <= %(ceiling)s
       AND agent.delete_time IS NULL
       AND NOT agent.held
),
begun AS (
    INSERT INTO vault.erasure AS begun (tenant, agent, erasure_id, kind, ceiling, create_time)
    SELECT %(tenant)s, owner.agent, %(change_id)s::uuid, %(kind)s, owner.ceiling, vault.clock()
      FROM owner
 RETURNING begun.agent, begun.erasure_id, begun.ceiling
),
stopped AS (
    UPDATE vault.session AS stopped
       SET close_time = vault.clock()
      FROM begun
     WHERE stopped.tenant = %(tenant)s
       AND stopped.session_id = ANY(ARRAY(
               SELECT release.writer
                 FROM vault.release
                WHERE release.tenant = %(tenant)s
                  AND (release.agent, release.kind, release.state) = (begun.agent, %(kind)s, 1)
                  AND release.writer IS NOT NULL
           ))
       AND stopped.close_time IS NULL
),
forgotten AS (
    DELETE FROM vault.erasure AS forgotten
     WHERE forgotten.tenant = %(tenant)s
       AND forgotten.create_time < vault.clock() - interval '1 day'
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind)
    SELECT %(tenant)s, %(change_id)s::uuid, begun.agent, coalesce(begun.ceiling, %(ceiling)s::smallint), %(host_key_id)s::uuid,
           %(method)s, 'OK', %(kind)s
      FROM (SELECT %(agent_id)s::text AS agent_id) AS asked
           LEFT JOIN begun
                ON asked.agent_id IS NOT NULL
     WHERE asked.agent_id IS NULL
        OR begun.agent IS NOT NULL
)
SELECT begun.agent, begun.erasure_id, begun.ceiling
  FROM begun;

-- name: end_erasure
-- The last step of EraseItems. No row: the agent has been deleted meanwhile, and erased, or is held.
DELETE FROM vault.erasure AS ended
 WHERE ended.tenant = %(tenant)s
   AND ended.agent = ANY(%(agents)s)
   AND ended.erasure_id = %(erasure_id)s
RETURNING ended.erasure_id;

-- name: open_own_session
-- Open the session in which a host's call reads or writes items: with the label of these, in a conversation of its own with the same
-- id, by which hosts do not see it. Its token is known to no one, and it ends with the call. No row: the key is not valid or its
-- ceiling too low, or no such agent. session_id NULL: above the agent's ceiling.
WITH owner AS MATERIALIZED ( -- FOR SHARE: the mark of DeleteAgent waits
    SELECT agent.agent, agent.ceiling
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id = %(agent_id)s
       AND agent.ceiling <= %(ceiling)s
       AND agent.delete_time IS NULL
       AND EXISTS (
               SELECT
                 FROM host_key
                WHERE host_key.tenant = %(tenant)s
                  AND host_key.host_key_id = %(host_key_id)s
                  AND host_key.ceiling >= %(level)s::smallint
                  AND host_key.trusted >= %(trusted)s
           )
       FOR SHARE
),
begun AS (
    INSERT INTO vault.conversation AS begun (tenant, agent, conversation_id, ceiling, taint, trusted, create_time)
    SELECT %(tenant)s, owner.agent, %(session_id)s::text, owner.ceiling, %(level)s, %(trusted)s, vault.clock()
      FROM owner
     WHERE owner.ceiling >= %(level)s
 RETURNING begun.agent, begun.conversation_id, begun.ceiling
),
opened AS (
    INSERT INTO vault.session AS opened (tenant, agent, session_id, conversation_id, ceiling, level, trusted, token_hash,
                                         create_time, expire_time)
    SELECT %(tenant)s, begun.agent, %(session_id)s::uuid, begun.conversation_id, begun.ceiling, %(level)s, %(trusted)s,
           %(token_hash)s, vault.clock(), vault.clock() + %(ttl)s
      FROM begun
 RETURNING opened.agent, opened.session_id
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, trusted, host_key_id, session_id, method, outcome, kind,
                                 item_id, revision, reason)
    SELECT %(tenant)s, %(change_id)s, opened.agent, %(level)s, %(trusted)s, %(host_key_id)s, opened.session_id, %(method)s, 'OK', %(kind)s,
           %(item_id)s::uuid, %(revision)s::integer, %(reason)s::text
      FROM opened
)
SELECT owner.ceiling AS agent_ceiling, opened.session_id
  FROM owner
       LEFT JOIN opened ON TRUE;

-- name: end_own_session
-- Ends no session that a host has opened. No row: it has been closed, with its agent or by another call.
UPDATE vault.session AS ended
   SET close_time = vault.clock()
 WHERE ended.tenant = %(tenant)s
   AND ended.session_id = %(session_id)s
   AND ended.conversation_id = ended.session_id::text
   AND ended.close_time IS NULL
   AND EXISTS (
           SELECT
             FROM vault.agent
            WHERE agent.tenant = %(tenant)s
              AND agent.agent = ended.agent
              AND agent.ceiling <= %(ceiling)s
       )
RETURNING ended.session_id;
