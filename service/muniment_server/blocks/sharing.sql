-- Which blocks agents share, as the control role. Declarations and links have no level: they are the host's.

-- name: lock_agent
-- The first step of CreateSharedBlock: waits for others that share the agent's blocks. No row: no such agent.
SELECT agent.agent
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = %(owner_agent_id)s
   AND agent.ceiling <= %(ceiling)s
   AND agent.delete_time IS NULL
   FOR NO KEY UPDATE;

-- name: create_shared_block
-- Declare a block as shared, under the lock of lock_agent; create its PUBLIC version if there is none.
-- No row: it is already declared, or content was given although there is a PUBLIC version. Otherwise, with what its owner
-- stored at PUBLIC before, and the limits of that.
WITH owner AS MATERIALIZED (
    SELECT agent.agent, agent.max_items, agent.max_bytes
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id = %(owner_agent_id)s
       AND agent.ceiling <= %(ceiling)s
       AND NOT EXISTS (
               SELECT
                 FROM vault.shared_block
                WHERE shared_block.tenant = %(tenant)s
                  AND (shared_block.owner, shared_block.label) = (agent.agent, %(label)s)
           )
),
stored AS MATERIALIZED ( -- before the item is created: on a cluster, each step sees what the steps before it have written
    SELECT coalesce(sum(storage_size.items), 0)::bigint AS items, coalesce(sum(storage_size.bytes), 0)::bigint AS bytes
      FROM muniment_public.storage_size
     WHERE storage_size.tenant = %(tenant)s
       AND storage_size.agent = (SELECT owner.agent FROM owner)
),
new_item AS ( -- ON CONFLICT without a target, which would need the right to read the table
    INSERT INTO muniment_public.item AS new_item (tenant, agent, kind, name, item_id, change_id, content, create_time, update_time)
    SELECT %(tenant)s, owner.agent, 3, %(label)s, %(item_id)s::uuid, %(change_id)s::uuid, %(content)s, vault.clock(), vault.clock()
      FROM owner
        ON CONFLICT DO NOTHING
 RETURNING new_item.item_id
),
new_revision AS (
    INSERT INTO muniment_public.revision AS new_revision (tenant, agent, item_id, revision, change_id, kind, name, content, tags, update_time)
    SELECT %(tenant)s, owner.agent, new_item.item_id, 1, %(change_id)s::uuid, 3, %(label)s, %(content)s, '{}', vault.clock()
      FROM owner
           CROSS JOIN new_item
),
counted AS (
    INSERT INTO muniment_public.storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, owner.agent, %(change_id)s::uuid, 1, 1, octet_length(%(content)s)
      FROM owner
           CROSS JOIN new_item
),
declared AS (
    INSERT INTO vault.shared_block AS declared (tenant, owner, label)
    SELECT %(tenant)s, owner.agent, %(label)s
      FROM owner
     WHERE %(content)s = ''
        OR EXISTS (SELECT FROM new_item)
 RETURNING declared.owner
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision)
    SELECT %(tenant)s, %(change_id)s, declared.owner, 1, %(host_key_id)s, 'CreateSharedBlock', 'OK', 3, new_item.item_id,
           CASE WHEN new_item.item_id IS NOT NULL THEN 1 END
      FROM declared
           LEFT JOIN new_item ON TRUE
)
SELECT declared.owner, EXISTS (SELECT FROM new_item) AS is_new, owner.max_items, owner.max_bytes, stored.items, stored.bytes
  FROM declared
       CROSS JOIN owner
       CROSS JOIN stored;

-- name: delete_shared_block
-- End a declaration, and delete its links. Nulls: no such agent, not declared.
WITH owner AS MATERIALIZED ( -- waits for AttachBlock, which holds it FOR SHARE
    SELECT agent.agent
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id = %(owner_agent_id)s
       AND agent.ceiling <= %(ceiling)s
       AND agent.delete_time IS NULL
       FOR NO KEY UPDATE
),
deleted AS (
    DELETE FROM vault.shared_block AS deleted
     USING owner
     WHERE deleted.tenant = %(tenant)s
       AND (deleted.owner, deleted.label) = (owner.agent, %(label)s)
 RETURNING deleted.owner
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind)
    SELECT %(tenant)s, %(change_id)s, deleted.owner, 1, %(host_key_id)s, 'DeleteSharedBlock', 'OK', 3
      FROM deleted
)
SELECT (SELECT owner.agent FROM owner) AS owner, (SELECT deleted.owner FROM deleted) AS declared;

-- name: lock_parties
-- The first step of AttachBlock: waits for DeleteSharedBlock. In a statement of its own, since one that waits would still
-- see the declaration that ended meanwhile, and a foreign key that fails makes Postgres log the label.
SELECT agent.agent
  FROM vault.agent
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id IN (%(owner_agent_id)s, %(agent_id)s)
   AND agent.ceiling <= %(ceiling)s
   AND agent.delete_time IS NULL
 ORDER BY agent.agent -- in one order, or two that attach to each other deadlock
   FOR SHARE;

-- name: attach_block
-- The second step of AttachBlock: let an agent read a shared block. The audit row names the agent that reads. `above` is the
-- ceiling of the owner if that is above the other's: then keys that reach the reader would learn of an owner that does not
-- exist for them. Nulls: no such agent, not declared, not above.
WITH parties AS MATERIALIZED ( -- locked again, in the same order: an agent may be new since the first step
    SELECT agent.agent, agent.agent_id, agent.ceiling
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id IN (%(owner_agent_id)s, %(agent_id)s)
       AND agent.ceiling <= %(ceiling)s
       AND agent.delete_time IS NULL
     ORDER BY agent.agent
       FOR SHARE
),
pair AS (
    SELECT (SELECT parties.agent FROM parties WHERE parties.agent_id = %(owner_agent_id)s) AS owner,
           (SELECT parties.ceiling FROM parties WHERE parties.agent_id = %(owner_agent_id)s) AS owner_ceiling,
           (SELECT parties.agent FROM parties WHERE parties.agent_id = %(agent_id)s) AS consumer,
           (SELECT parties.ceiling FROM parties WHERE parties.agent_id = %(agent_id)s) AS consumer_ceiling
),
judged AS (
    SELECT pair.owner, pair.consumer,
           CASE WHEN pair.owner_ceiling > pair.consumer_ceiling THEN pair.owner_ceiling END AS above
      FROM pair
),
declared AS (
    SELECT shared_block.owner
      FROM vault.shared_block
     WHERE shared_block.tenant = %(tenant)s
       AND (shared_block.owner, shared_block.label) = ((SELECT judged.owner FROM judged), %(label)s)
),
attached AS (
    INSERT INTO vault.block_link AS attached (tenant, owner, label, consumer)
    SELECT %(tenant)s, declared.owner, %(label)s, judged.consumer
      FROM declared
           CROSS JOIN judged
     WHERE judged.consumer IS NOT NULL
       AND judged.above IS NULL
        ON CONFLICT DO NOTHING
 RETURNING attached.consumer
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind)
    SELECT %(tenant)s, %(change_id)s, attached.consumer, 1, %(host_key_id)s, 'AttachBlock', 'OK', 3
      FROM attached
)
SELECT judged.owner, judged.consumer, (SELECT declared.owner FROM declared) AS declared, judged.above
  FROM judged;

-- name: detach_block
-- Stop letting an agent read a shared block. Nulls: no such agent, not declared, not attached.
WITH pair AS MATERIALIZED (
    SELECT (
               SELECT agent.agent
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent_id = %(owner_agent_id)s
                  AND agent.ceiling <= %(ceiling)s
           ) AS owner,
           (
               SELECT agent.agent
                 FROM vault.agent
                WHERE agent.tenant = %(tenant)s
                  AND agent.agent_id = %(agent_id)s
                  AND agent.ceiling <= %(ceiling)s
           ) AS consumer
),
detached AS (
    DELETE FROM vault.block_link AS detached
     USING pair
     WHERE detached.tenant = %(tenant)s
       AND (detached.owner, detached.label, detached.consumer) = (pair.owner, %(label)s, pair.consumer)
 RETURNING detached.consumer
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind)
    SELECT %(tenant)s, %(change_id)s, detached.consumer, 1, %(host_key_id)s, 'DetachBlock', 'OK', 3
      FROM detached
)
SELECT pair.owner, pair.consumer,
       (
           SELECT shared_block.owner
             FROM vault.shared_block
            WHERE shared_block.tenant = %(tenant)s
              AND (shared_block.owner, shared_block.label) = (pair.owner, %(label)s)
       ) AS declared,
       (SELECT detached.consumer FROM detached) AS detached
  FROM pair;

-- name: list_block_consumers
-- One page of the agents that a shared block is attached to, by id. No row: no such agent. Nulls: not declared; nothing more.
SELECT shared_block.owner AS declared, found.agent_id
  FROM vault.agent
       LEFT JOIN vault.shared_block
            ON shared_block.tenant = %(tenant)s
           AND (shared_block.owner, shared_block.label) = (agent.agent, %(label)s)
       LEFT JOIN LATERAL (
           SELECT consumer.agent_id
             FROM vault.block_link
                  JOIN vault.agent AS consumer
                       ON consumer.tenant = %(tenant)s
                      AND consumer.agent = block_link.consumer
            WHERE block_link.tenant = %(tenant)s
              AND (block_link.owner, block_link.label) = (shared_block.owner, shared_block.label)
              AND consumer.agent_id > %(after)s
              AND consumer.ceiling <= %(ceiling)s
            ORDER BY consumer.agent_id
            LIMIT %(limit)s
       ) AS found ON TRUE
 WHERE agent.tenant = %(tenant)s
   AND agent.agent_id = %(owner_agent_id)s
   AND agent.ceiling <= %(ceiling)s
 ORDER BY found.agent_id;
