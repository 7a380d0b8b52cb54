-- History, purge and checks, run as the owner. Reading content writes audit rows.

-- name: history
-- Every version of one name at every level, oldest first.
WITH item AS (
    SELECT item.* FROM muniment_public.item
     UNION ALL
    SELECT item.* FROM muniment_internal.item
     UNION ALL
    SELECT item.* FROM muniment_confidential.item
     UNION ALL
    SELECT item.* FROM muniment_restricted.item
),
ledger AS (
    SELECT 1 AS level, revision.* FROM muniment_public.revision
     UNION ALL
    SELECT 2, revision.* FROM muniment_internal.revision
     UNION ALL
    SELECT 3, revision.* FROM muniment_confidential.revision
     UNION ALL
    SELECT 4, revision.* FROM muniment_restricted.revision
     UNION ALL -- a passage is written once: its row is its ledger. A deletion replaces the change_id
    SELECT item.level, item.tenant, item.agent, item.item_id, item.revision,
           CASE WHEN item.delete_time IS NULL THEN item.change_id END, item.kind, item.name, item.content, item.tags,
           item.update_time, item.expire_time
      FROM item
     WHERE item.kind = 4
),
write_event AS (
    SELECT audit.tenant, audit.event_id, audit.session_id
      FROM muniment_auditor.audit
),
item_version AS (
    SELECT ledger.level, ledger.item_id, ledger.revision, ledger.update_time, ledger.expire_time, ledger.content, ledger.tags,
           write_event.session_id, item.delete_time,
           coalesce(item.revision = ledger.revision AND item.delete_time IS NULL, FALSE) AS is_live
      FROM ledger
           LEFT JOIN item
                  ON item.tenant = %(tenant)s
                 AND (item.agent, item.level, item.item_id) = (ledger.agent, ledger.level, ledger.item_id)
           LEFT JOIN write_event
                  ON write_event.tenant = %(tenant)s
                 AND write_event.event_id = ledger.change_id
     WHERE ledger.tenant = %(tenant)s
       AND ledger.agent = %(agent)s
       AND (ledger.kind, ledger.name) = (%(kind)s, %(name)s)
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, kind, reason)
    SELECT %(tenant)s, gen_random_uuid(), %(agent)s, version_level.level, 'history', 'OK', %(kind)s, 'by ' || %(login)s::text
      FROM (SELECT DISTINCT item_version.level FROM item_version) AS version_level
)
SELECT item_version.level AS classification, item_version.item_id, item_version.revision, item_version.update_time, item_version.expire_time,
       item_version.content, item_version.tags, item_version.session_id, item_version.is_live, item_version.delete_time
  FROM item_version
 ORDER BY item_version.update_time, item_version.level, item_version.revision;

-- name: purge
-- Remove versions that were deleted, overwritten or expired before a time, at the level of the search path: all, or those of
-- one tenant, agent, kind or name. Audit rows stay. Each new one names its agent, since whoever reads it must reach the ceiling
-- of that.
WITH old_item AS (
    DELETE FROM item AS old_item
     WHERE (old_item.delete_time < %(before)s OR old_item.expire_time < %(before)s)
       AND (%(tenant)s::bigint IS NULL OR old_item.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR old_item.agent = %(agent)s)
       AND (%(kind)s::smallint IS NULL OR old_item.kind = %(kind)s)
       AND (%(name)s::text IS NULL OR old_item.name = %(name)s)
 RETURNING old_item.tenant, old_item.agent, old_item.item_id, old_item.kind, old_item.delete_time,
           octet_length(old_item.content) AS bytes
),
unindexed AS ( -- expired chunks: those of deleted items have already been removed
    DELETE FROM chunk AS unindexed
     WHERE unindexed.expire_time < %(before)s
       AND (%(tenant)s::bigint IS NULL OR unindexed.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR unindexed.agent = %(agent)s)
       AND (%(kind)s::smallint IS NULL OR unindexed.kind = %(kind)s)
       AND (%(name)s::text IS NULL OR unindexed.name = %(name)s)
 RETURNING unindexed.tenant, unindexed.agent, unindexed.kind, unindexed.language, unindexed.stem_count, unindexed.gram_count
),
counted AS (
    INSERT INTO stat AS counted (tenant, agent, kind, language, change_id, chunks, stems, grams)
    SELECT unindexed.tenant, unindexed.agent, unindexed.kind, unindexed.language, gen_random_uuid(),
           -count(*), -sum(unindexed.stem_count), -sum(unindexed.gram_count)
      FROM unindexed
     GROUP BY unindexed.tenant, unindexed.agent, unindexed.kind, unindexed.language
),
old_revision AS (
    DELETE FROM revision AS old_revision
     WHERE (%(tenant)s::bigint IS NULL OR old_revision.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR old_revision.agent = %(agent)s)
       AND (%(kind)s::smallint IS NULL OR old_revision.kind = %(kind)s)
       AND (
               EXISTS ( -- whatever its name was at that revision
                   SELECT
                     FROM old_item
                    WHERE (old_item.tenant, old_item.agent, old_item.item_id) = (old_revision.tenant, old_revision.agent, old_revision.item_id)
               )
            OR (
                   %(name)s::text IS NULL
                OR EXISTS ( -- that or a later one: if only those of a name went, renames would leave gaps
                       SELECT
                         FROM revision AS named
                        WHERE (named.tenant, named.agent, named.item_id)
                              = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                          AND named.revision >= old_revision.revision
                          AND named.name = %(name)s
                   )
               )
           AND (
                   ( -- overwritten before that time: the next version that is left is older
                       SELECT newer.update_time
                         FROM revision AS newer
                        WHERE (newer.tenant, newer.agent, newer.item_id)
                              = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                          AND newer.revision > old_revision.revision
                        ORDER BY newer.revision
                        LIMIT 1
                   ) < %(before)s
                OR ( -- the next one was erased. After a restore, an audit row may name one that the database never had, or has written anew
                       (old_revision.tenant, old_revision.agent, old_revision.item_id, old_revision.revision + 1) IN (
                           SELECT audit.tenant, audit.agent, audit.item_id, audit.revision
                             FROM muniment_control.audit
                            WHERE audit.method = 'EraseItems'
                              AND audit.outcome = 'OK'
                              AND audit.time < %(before)s
                       )
                   AND NOT EXISTS (
                           SELECT
                             FROM item
                            WHERE (item.tenant, item.agent, item.item_id)
                                  = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                              AND item.revision = old_revision.revision
                       )
                   AND NOT EXISTS (
                           SELECT
                             FROM revision AS newer
                            WHERE (newer.tenant, newer.agent, newer.item_id, newer.revision)
                                  = (old_revision.tenant, old_revision.agent, old_revision.item_id, old_revision.revision + 1)
                       )
                   )
                OR ( -- expired, and a new item has replaced its row
                       old_revision.expire_time < %(before)s
                   AND NOT EXISTS (
                           SELECT
                             FROM item
                            WHERE (item.tenant, item.agent, item.item_id)
                                  = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                       )
                   )
               )
           )
 RETURNING old_revision.tenant, old_revision.agent, octet_length(old_revision.content) AS bytes
),
forgotten AS (
    SELECT old_item.tenant, old_item.agent, (old_item.delete_time IS NULL)::integer AS items, (old_item.kind = 4)::integer AS versions,
           CASE WHEN old_item.kind = 4 THEN old_item.bytes ELSE 0 END AS bytes
      FROM old_item
     UNION ALL
    SELECT old_revision.tenant, old_revision.agent, 0, 1, old_revision.bytes
      FROM old_revision
),
freed AS (
    INSERT INTO storage AS freed (tenant, agent, change_id, items, versions, bytes)
    SELECT forgotten.tenant, forgotten.agent, gen_random_uuid(), -sum(forgotten.items), -sum(forgotten.versions), -sum(forgotten.bytes)
      FROM forgotten
     GROUP BY forgotten.tenant, forgotten.agent
),
purged AS (
    SELECT old_item.tenant, old_item.agent FROM old_item
     UNION
    SELECT old_revision.tenant, old_revision.agent FROM old_revision
),
cleared AS ( -- the texts may have contributed to the centers of lists
    UPDATE embedding_list AS cleared
       SET signs   = NULL,
           version = cleared.version + 1
      FROM purged
     WHERE (cleared.tenant, cleared.agent) = (purged.tenant, purged.agent)
       AND (%(kind)s::smallint IS NULL OR cleared.kind = %(kind)s)
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, kind, reason)
    SELECT purged.tenant, gen_random_uuid(), purged.agent, %(number)s, 'purge', 'OK', %(kind)s, 'by ' || %(login)s::text
      FROM purged
)
SELECT (SELECT count(*) FROM old_item) AS items, (SELECT count(*) FROM old_revision) AS revisions,
       array_agg(purged.tenant) AS tenants, array_agg(purged.agent) AS agents
  FROM purged;

-- name: clear_centers_of_purged
-- Clear the centers of agents again after a purge: one computed meanwhile may include a purged text.
UPDATE embedding_list AS cleared
   SET signs   = NULL,
       version = cleared.version + 1
  FROM unnest(%(tenants)s::bigint[], %(agents)s::bigint[]) AS purged (tenant, agent)
 WHERE (cleared.tenant, cleared.agent) = (purged.tenant, purged.agent)
   AND (%(kind)s::smallint IS NULL OR cleared.kind = %(kind)s);

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
