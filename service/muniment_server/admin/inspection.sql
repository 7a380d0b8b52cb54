-- What `muniment doctor` counts.

-- name: broken_index
-- Inconsistencies of the search index, at the level of the search path: live items without chunks, chunks of no live version,
-- chunks that are neither embedded nor queued, embeddings made with a chunk that is gone, and wrong term statistics.
-- Deleted agents do not count, whose rows are being erased.
WITH deleted AS MATERIALIZED (
    SELECT agent.tenant, agent.agent
      FROM vault.agent
     WHERE agent.delete_time IS NOT NULL
),
unknown AS (
    SELECT item.tenant
      FROM item
     WHERE item.delete_time IS NULL
       AND item.kind IN (1, 2, 4)
       AND NOT EXISTS (
               SELECT
                 FROM chunk
                WHERE (chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id)
                      = (item.tenant, item.agent, item.kind, item.name, item.change_id)
           )
       AND (item.tenant, item.agent) NOT IN (SELECT deleted.tenant, deleted.agent FROM deleted)
),
stale AS (
    SELECT chunk.tenant
      FROM chunk
     WHERE NOT EXISTS (
               SELECT
                 FROM item
                WHERE item.delete_time IS NULL
                  AND (chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id)
                      = (item.tenant, item.agent, item.kind, item.name, item.change_id)
           )
       AND (chunk.tenant, chunk.agent) NOT IN (SELECT deleted.tenant, deleted.agent FROM deleted)
),
not_queued AS (
    SELECT chunk.tenant
      FROM chunk
     WHERE NOT EXISTS (
               SELECT
                 FROM meaning
                WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
                      = (chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id, chunk.piece)
           )
),
orphaned AS (
    SELECT meaning.tenant
      FROM meaning
     WHERE meaning.prior IS NOT NULL
       AND NOT EXISTS (
               SELECT
                 FROM chunk
                WHERE (chunk.tenant, chunk.agent, chunk.change_id) = (meaning.tenant, meaning.agent, meaning.prior)
           )
       AND (meaning.tenant, meaning.agent) NOT IN (SELECT deleted.tenant, deleted.agent FROM deleted)
),
counted AS (
    SELECT stat.tenant, stat.agent, stat.kind, stat.language, stat.chunks, stat.stems, stat.grams
      FROM stat
     UNION ALL
    SELECT chunk.tenant, chunk.agent, chunk.kind, chunk.language, -1, -chunk.stem_count, -chunk.gram_count
      FROM chunk
),
wrong AS (
    SELECT counted.tenant
      FROM counted
     WHERE (counted.tenant, counted.agent) NOT IN (SELECT deleted.tenant, deleted.agent FROM deleted)
     GROUP BY counted.tenant, counted.agent, counted.kind, counted.language
    HAVING (sum(counted.chunks), sum(counted.stems), sum(counted.grams)) <> (0, 0, 0)
)
SELECT (SELECT count(*) FROM unknown) + (SELECT count(*) FROM stale) + (SELECT count(*) FROM not_queued)
       + (SELECT count(*) FROM orphaned) + (SELECT count(*) FROM wrong) AS broken;

-- name: broken_storage
-- Agents whose counts of what they store differ from the rows, at the level of the search path. Deleted agents do not count.
WITH counted AS (
    SELECT item.tenant, item.agent, (item.delete_time IS NULL)::integer AS items, (item.kind = 4)::integer AS versions,
           CASE WHEN item.kind = 4 THEN octet_length(item.content) ELSE 0 END AS bytes
      FROM item
     UNION ALL
    SELECT revision.tenant, revision.agent, 0, 1, octet_length(revision.content)
      FROM revision
     UNION ALL
    SELECT storage.tenant, storage.agent, -storage.items, -storage.versions, -storage.bytes
      FROM storage
),
wrong AS (
    SELECT counted.tenant, counted.agent
      FROM counted
     GROUP BY counted.tenant, counted.agent
    HAVING (sum(counted.items), sum(counted.versions), sum(counted.bytes)) <> (0, 0, 0)
)
SELECT count(*) AS broken
  FROM wrong
       JOIN vault.agent USING (tenant, agent)
 WHERE agent.delete_time IS NULL;

-- name: lost_items
-- Items that are gone, at the level of the search path, though the search index or their last revision is still there. An item
-- that has expired may be replaced, and leave its revisions; one of which a revision was erased, too. Deleted agents do not count.
WITH deleted AS MATERIALIZED (
    SELECT agent.tenant, agent.agent
      FROM vault.agent
     WHERE agent.delete_time IS NOT NULL
),
lost AS (
    SELECT chunk.tenant, chunk.agent, chunk.kind, chunk.name
      FROM chunk
     WHERE NOT EXISTS (
               SELECT
                 FROM item
                WHERE (item.tenant, item.agent, item.kind, item.name) = (chunk.tenant, chunk.agent, chunk.kind, chunk.name)
           )
     UNION
    SELECT revision.tenant, revision.agent, revision.kind, revision.name
      FROM revision
     WHERE (revision.expire_time IS NULL OR revision.expire_time > vault.clock())
       AND NOT EXISTS (
               SELECT
                 FROM item
                WHERE (item.tenant, item.agent, item.item_id) = (revision.tenant, revision.agent, revision.item_id)
           )
       AND NOT EXISTS (
               SELECT
                 FROM revision AS newer
                WHERE (newer.tenant, newer.agent, newer.item_id) = (revision.tenant, revision.agent, revision.item_id)
                  AND newer.revision > revision.revision
           )
       AND NOT EXISTS (
               SELECT
                 FROM muniment_control.audit
                WHERE (audit.tenant, audit.agent, audit.item_id) = (revision.tenant, revision.agent, revision.item_id)
                  AND audit.method = 'EraseItems'
                  AND audit.outcome = 'OK'
           )
)
SELECT count(*) AS broken
  FROM lost
 WHERE (lost.tenant, lost.agent) NOT IN (SELECT deleted.tenant, deleted.agent FROM deleted);

-- name: broken_ledgers
-- Items whose ledger has a gap or does not end at the item's revision, at the level of the search path. Passages have no ledger.
-- A revision that is missing because EraseItems erased it is no gap. After a restore, it may have been written anew.
-- NOT MATERIALIZED: on a cluster, each shard then reads items and ledgers at one moment. Otherwise, items saved meanwhile would
-- seem to lack a ledger.
WITH erased AS (
    SELECT DISTINCT audit.tenant, audit.agent, audit.item_id, audit.revision
      FROM muniment_control.audit
     WHERE audit.method = 'EraseItems'
       AND audit.outcome = 'OK'
       AND audit.revision IS NOT NULL
       AND NOT EXISTS (
               SELECT
                 FROM revision
                WHERE (revision.tenant, revision.agent, revision.item_id, revision.revision)
                      = (audit.tenant, audit.agent, audit.item_id, audit.revision)
           )
),
ledger AS NOT MATERIALIZED (
    SELECT revision.tenant, revision.agent, revision.item_id,
           count(*) AS versions, min(revision.revision) AS first, max(revision.revision) AS last
      FROM revision
     GROUP BY revision.tenant, revision.agent, revision.item_id
),
shortened AS (
    SELECT ledger.tenant, ledger.agent, ledger.item_id, count(*) AS erased
      FROM ledger
           JOIN erased USING (tenant, agent, item_id)
     WHERE erased.revision BETWEEN ledger.first AND ledger.last
     GROUP BY ledger.tenant, ledger.agent, ledger.item_id
)
SELECT count(*) AS broken
  FROM item
       LEFT JOIN ledger USING (tenant, agent, item_id)
       LEFT JOIN shortened USING (tenant, agent, item_id)
 WHERE item.kind <> 4
   AND (ledger.last IS DISTINCT FROM item.revision
        OR ledger.versions <> ledger.last - ledger.first + 1 - coalesce(shortened.erased, 0));

-- name: count_waiting
-- How many chunks are queued for embedding, and how many have an embedding of another model, at the level of the search path.
SELECT count(*) FILTER (WHERE meaning.embedder IS NULL) AS waiting,
       count(*) FILTER (WHERE meaning.embedder <> %(embedder)s) AS outdated
  FROM meaning;

-- name: count_remote
-- How many chunks wait for an embedding by a model at an address, and how many have one, at the level of the search path.
SELECT count(*) FILTER (WHERE remote.signs IS NULL) AS waiting, count(*) FILTER (WHERE remote.signs IS NOT NULL) AS made
  FROM remote_embedding AS remote;

-- name: count_erasing
-- How many items and versions of deleted agents are left, at the level of the search path.
WITH deleted AS MATERIALIZED (
    SELECT agent.tenant, agent.agent
      FROM vault.agent
     WHERE agent.delete_time IS NOT NULL
)
SELECT (SELECT count(*) FROM item JOIN deleted USING (tenant, agent))
       + (SELECT count(*) FROM revision JOIN deleted USING (tenant, agent)) AS rows;

-- name: count_deleted_agents
SELECT count(*) AS rows
  FROM vault.agent
 WHERE agent.delete_time IS NOT NULL;

-- name: nearly_full_agents
-- The agents that have stored a part of what they may at one level, or more of it.
SELECT tenant.name AS tenant, agent.agent_id, stored.items, agent.max_items, stored.bytes, agent.max_bytes
  FROM vault.agent
       JOIN vault.tenant USING (tenant)
       CROSS JOIN LATERAL (
           SELECT coalesce(sum(storage_size.items), 0)::bigint AS items, coalesce(sum(storage_size.bytes), 0)::bigint AS bytes
             FROM storage_size
            WHERE (storage_size.tenant, storage_size.agent) = (agent.tenant, agent.agent)
       ) AS stored
 WHERE agent.delete_time IS NULL
   AND (stored.items >= greatest(%(part)s * agent.max_items, 1) OR stored.bytes >= greatest(%(part)s * agent.max_bytes, 1))
 ORDER BY tenant.name, agent.agent_id;

-- name: count_agents
SELECT (SELECT count(*) FROM vault.tenant) AS tenants, (SELECT count(*) FROM vault.agent) AS agents;
