-- How EraseItems erases, as the eraser: at one level, whose schema is first in the search path, and within the erasure of
-- the call, which the views `erasing_…` check.

-- name: use_schema
-- Resolve unqualified names in the schema of one level until the end of the transaction.
SELECT set_config('search_path', %(schema)s, true);

-- name: find_valid_key
-- The host key of the call. No row: it has been revoked or frozen, or has expired.
SELECT host_key.host_key_id
  FROM muniment_eraser.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.host_key_id = %(host_key_id)s;

-- name: find_agents
-- The agents that have items with a tag, or had in any revision.
SELECT item.agent
  FROM erasing_item AS item
 WHERE item.tenant = %(tenant)s
   AND item.kind = %(kind)s
   AND item.tags @> ARRAY[%(tag)s::text]
 UNION
SELECT revision.agent
  FROM erasing_revision AS revision
 WHERE revision.tenant = %(tenant)s
   AND revision.kind = %(kind)s
   AND revision.tags @> ARRAY[%(tag)s::text];

-- name: find_erased
-- The next items after an id that have, or in any revision had, a name or a tag, and their sizes. In the order of their ids,
-- so that each page reads on in the indexes where the last one ended.
SELECT found.item_id,
       coalesce(
           (
               SELECT item.bytes
                 FROM erasing_item AS item
                WHERE item.tenant = %(tenant)s
                  AND (item.agent, item.item_id) = (%(agent)s, found.item_id)
           ),
           0
       ) AS bytes
  FROM (
           (
               SELECT item.item_id
                 FROM erasing_item AS item
                WHERE item.tenant = %(tenant)s
                  AND (item.agent, item.kind) = (%(agent)s, %(kind)s)
                  AND item.item_id > %(after_id)s
                  AND CASE WHEN %(tag)s::text IS NULL THEN item.name = %(name)s ELSE item.tags @> ARRAY[%(tag)s::text] END
                ORDER BY item.item_id
                LIMIT %(limit)s
           )
            UNION
           (
               SELECT DISTINCT revision.item_id
                 FROM erasing_revision AS revision
                WHERE revision.tenant = %(tenant)s
                  AND (revision.agent, revision.kind) = (%(agent)s, %(kind)s)
                  AND revision.item_id > %(after_id)s
                  AND CASE WHEN %(tag)s::text IS NULL THEN revision.name = %(name)s ELSE revision.tags @> ARRAY[%(tag)s::text] END
                ORDER BY revision.item_id
                LIMIT %(limit)s
           )
       ) AS found
 ORDER BY found.item_id
 LIMIT %(limit)s;

-- name: lock_free
-- Lock those of some items that no other transaction has locked. Never waits, and so never deadlocks with writers.
SELECT item.item_id
  FROM erasing_item AS item
 WHERE item.tenant = %(tenant)s
   AND item.agent = %(agent)s
   AND item.item_id = ANY(%(item_ids)s)
   FOR UPDATE SKIP LOCKED;

-- name: lock_one
-- Lock one item. Waits for its writer; the transaction holds no other lock. No row: it is gone, or a rename has moved it.
SELECT item.item_id
  FROM erasing_item AS item
 WHERE item.tenant = %(tenant)s
   AND item.agent = %(agent)s
   AND item.item_id = ANY(%(item_ids)s)
   FOR UPDATE;

-- name: find_present
-- Those of some items that have a row, locked or not: of the others, only revisions are left.
SELECT item.item_id
  FROM erasing_item AS item
 WHERE item.tenant = %(tenant)s
   AND item.agent = %(agent)s
   AND item.item_id = ANY(%(item_ids)s);

-- name: log_erased
-- An audit row for each item, or for one revision of it, before it is erased: afterwards no one can tell what there was.
INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision)
SELECT %(tenant)s, erased.change_id, %(agent)s, %(level)s, %(host_key_id)s, %(method)s, 'OK', %(kind)s, erased.item_id,
       %(revision)s::integer
  FROM unnest(%(item_ids)s::uuid[], %(change_ids)s::uuid[]) AS erased (item_id, change_id)
 WHERE EXISTS (
           SELECT
             FROM erasing_item AS item
            WHERE item.tenant = %(tenant)s
              AND (item.agent, item.kind, item.item_id) = (%(agent)s, %(kind)s, erased.item_id)
              AND (%(revision)s IS NULL OR item.revision = %(revision)s)
       )
    OR EXISTS (
           SELECT
             FROM erasing_revision AS revision
            WHERE revision.tenant = %(tenant)s
              AND (revision.agent, revision.kind, revision.item_id) = (%(agent)s, %(kind)s, erased.item_id)
              AND (%(revision)s IS NULL OR revision.revision = %(revision)s)
       );

-- name: clear_centers
-- Clear the centers of the lists of embeddings, since the texts and their earlier versions may have contributed to
-- them. A center that is being computed meanwhile is not stored, because the version has changed. Locked in order, so
-- that two erasures do not deadlock.
WITH locked AS MATERIALIZED (
    SELECT list.embedder, list.number
      FROM erasing_embedding_list AS list
     WHERE list.tenant = %(tenant)s
       AND (list.agent, list.kind) = (%(agent)s, %(kind)s)
     ORDER BY list.embedder, list.number
       FOR NO KEY UPDATE
)
UPDATE erasing_embedding_list AS cleared
   SET signs   = NULL,
       version = cleared.version + 1
  FROM locked
 WHERE cleared.tenant = %(tenant)s
   AND (cleared.agent, cleared.kind) = (%(agent)s, %(kind)s)
   AND (cleared.embedder, cleared.number) = (locked.embedder, locked.number);

-- name: unindex_erased
-- Remove the chunks of the items, with their part of the statistics. Embeddings that include their text are made again.
WITH gone AS MATERIALIZED (
    SELECT item.name, item.change_id
      FROM erasing_item AS item
     WHERE item.tenant = %(tenant)s
       AND (item.agent, item.kind) = (%(agent)s, %(kind)s)
       AND item.item_id = ANY(%(item_ids)s)
       AND (%(revision)s::integer IS NULL OR item.revision = %(revision)s)
),
cleared AS (
    UPDATE erasing_embedding AS cleared
       SET prior = NULL, embedder = NULL, signs = NULL, vector = NULL, list = NULL
     WHERE cleared.tenant = %(tenant)s
       AND (cleared.agent, cleared.kind) = (%(agent)s, %(kind)s)
       AND cleared.prior = ANY(ARRAY(SELECT gone.change_id FROM gone))
 RETURNING cleared.agent
),
forgotten AS ( -- after cleared, in the order in which a deletion cascades, so that the two do not deadlock
    DELETE FROM erasing_remote_embedding AS forgotten
     WHERE forgotten.tenant = %(tenant)s
       AND (forgotten.agent, forgotten.kind) = (%(agent)s, %(kind)s)
       AND forgotten.prior_name = ANY(ARRAY(SELECT gone.name FROM gone))
       AND (SELECT count(*) FROM cleared) > 0
),
unindexed AS (
    DELETE FROM erasing_chunk AS unindexed
     WHERE unindexed.tenant = %(tenant)s
       AND (unindexed.agent, unindexed.kind) = (%(agent)s, %(kind)s)
       AND unindexed.name = ANY(ARRAY(SELECT gone.name FROM gone))
       AND unindexed.change_id = ANY(ARRAY(SELECT gone.change_id FROM gone))
 RETURNING unindexed.language, unindexed.stem_count, unindexed.gram_count
)
INSERT INTO erasing_stat AS counted (tenant, agent, kind, language, change_id, chunks, stems, grams)
SELECT %(tenant)s, %(agent)s, %(kind)s, unindexed.language, %(change_id)s, -count(*), -sum(unindexed.stem_count),
       -sum(unindexed.gram_count)
  FROM unindexed
 GROUP BY unindexed.language;

-- name: erase_items_of_call
-- Passages have no revisions: their rows count as versions.
WITH erased AS (
    DELETE FROM erasing_item AS erased
     WHERE erased.tenant = %(tenant)s
       AND (erased.agent, erased.kind) = (%(agent)s, %(kind)s)
       AND erased.item_id IN ( -- which are none after a hold: a cluster deletes from the table itself
               SELECT item.item_id
                 FROM erasing_item AS item
                WHERE item.tenant = %(tenant)s
                  AND (item.agent, item.kind) = (%(agent)s, %(kind)s)
                  AND item.item_id = ANY(%(item_ids)s)
           )
       AND (%(revision)s::integer IS NULL OR erased.revision = %(revision)s)
 RETURNING erased.kind, erased.delete_time, erased.bytes
)
INSERT INTO erasing_storage AS freed (tenant, agent, change_id, items, versions, bytes)
SELECT %(tenant)s, %(agent)s, %(change_id)s, -count(*) FILTER (WHERE erased.delete_time IS NULL),
       -count(*) FILTER (WHERE erased.kind = 4), -coalesce(sum(erased.bytes) FILTER (WHERE erased.kind = 4), 0)
  FROM erased
HAVING count(*) FILTER (WHERE erased.delete_time IS NULL OR erased.kind = 4) > 0;

-- name: erase_revisions_of_call
-- Erase revisions of the items, the oldest first, and say how many.
WITH erased AS (
    DELETE FROM erasing_revision AS erased
     WHERE erased.tenant = %(tenant)s
       AND (erased.agent, erased.kind) = (%(agent)s, %(kind)s)
       AND (erased.item_id, erased.revision) IN (
               SELECT revision.item_id, revision.revision
                 FROM erasing_revision AS revision
                WHERE revision.tenant = %(tenant)s
                  AND (revision.agent, revision.kind) = (%(agent)s, %(kind)s)
                  AND revision.item_id = ANY(%(item_ids)s)
                  AND (%(revision)s::integer IS NULL OR revision.revision = %(revision)s)
                ORDER BY revision.item_id, revision.revision
                LIMIT %(most)s
           )
 RETURNING erased.bytes
),
freed AS (
    INSERT INTO erasing_storage AS freed (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, %(agent)s, %(change_id)s, 0, -count(*), -sum(erased.bytes)
      FROM erased
    HAVING count(*) > 0
)
SELECT count(*) AS revisions
  FROM erased;
