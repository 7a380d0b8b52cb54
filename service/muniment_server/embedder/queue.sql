-- How the embedder, as the role of one level, reads the texts of that level's own chunks, of all agents, and stores their
-- embeddings. It has no session: these queries are the one exception to the session predicate.

-- name: queue_length
-- Counted up to a limit, so that a long queue does not make this slow.
SELECT count(*)
  FROM (
           SELECT meaning.tenant
             FROM meaning
            WHERE meaning.embedder IS NULL
            LIMIT 100000
       ) AS queued;

-- name: remote_queue_length
SELECT count(*)
  FROM (
           SELECT waiting.tenant
             FROM remote_embedding AS waiting
            WHERE waiting.model = %(model)s
              AND waiting.signs IS NULL
              AND NOT waiting.is_missing
            UNION ALL
           SELECT missing.tenant
             FROM remote_embedding AS missing
            WHERE missing.model = %(model)s
              AND missing.signs IS NULL
              AND missing.is_missing
            LIMIT 100000
       ) AS queued;

-- name: waiting_chunks
-- A batch of queued chunks, with the text to embed: the passage before and the chunk itself, each after its author or key.
-- The batch begins after a given agent, so that agents take turns. model: null for the built-in one. is_missing: of the queue of
-- a model at an address, the part to take. before_name and before_change: the passage before, if its text is included.
-- For a model at an address, the text of an expired item is empty, so that it is not sent. The chunk is returned all the same: a
-- batch without chunks is the end of the queue.
WITH waiting AS MATERIALIZED ( -- computed first: a plan that joins all queued chunks takes half a second for 1,500
    (
        SELECT meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
          FROM meaning
         WHERE %(model)s::integer IS NULL
           AND meaning.embedder IS NULL
           AND (meaning.tenant, meaning.agent) > (%(tenant)s, %(agent)s)
         ORDER BY meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
         LIMIT %(most)s
    )
     UNION ALL
    (
        SELECT remote.tenant, remote.agent, remote.kind, remote.name, remote.change_id, remote.number
          FROM remote_embedding AS remote
         WHERE NOT %(is_missing)s
           AND remote.model = %(model)s
           AND remote.signs IS NULL
           AND NOT remote.is_missing
           AND (remote.tenant, remote.agent) > (%(tenant)s, %(agent)s)
         ORDER BY remote.tenant, remote.agent, remote.kind, remote.name, remote.change_id, remote.number
         LIMIT %(most)s
    )
     UNION ALL
    (
        SELECT remote.tenant, remote.agent, remote.kind, remote.name, remote.change_id, remote.number
          FROM remote_embedding AS remote
         WHERE %(is_missing)s
           AND remote.model = %(model)s
           AND remote.signs IS NULL
           AND remote.is_missing
           AND (remote.tenant, remote.agent) > (%(tenant)s, %(agent)s)
         ORDER BY remote.tenant, remote.agent, remote.kind, remote.name, remote.change_id, remote.number
         LIMIT %(most)s
    )
)
SELECT waiting.tenant, waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.piece AS number, meaning.prior,
       before.name AS before_name, before.change_id AS before_change,
       CASE WHEN item.expire_time <= vault.clock() AND %(model)s::integer IS NOT NULL THEN ''
            ELSE concat_ws(E'\n', nullif(concat_ws(': ', before.author, before.content), ''),
                           concat_ws(': ', CASE WHEN item.kind = 1 THEN item.name ELSE item.author END,
                                     substr(item.content, chunk.start + 1, chunk.size))) END AS text
  FROM waiting
       JOIN meaning
            ON (meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
               = (waiting.tenant, waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.piece)
       JOIN chunk
            ON (chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id, chunk.piece)
               = (waiting.tenant, waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.piece)
       JOIN item
            ON (item.tenant, item.agent, item.kind, item.name, item.change_id)
               = (chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id)
           AND item.delete_time IS NULL
       LEFT JOIN LATERAL (
           SELECT earlier.tenant, earlier.agent, earlier.kind, earlier.name, earlier.change_id
             FROM chunk AS earlier
            WHERE (earlier.tenant, earlier.agent, earlier.thread, earlier.piece) = (chunk.tenant, chunk.agent, chunk.thread, 0)
              AND earlier.place < chunk.place
              AND earlier.change_id = meaning.prior
            ORDER BY earlier.place DESC
            LIMIT 1
       ) AS prior ON TRUE
       LEFT JOIN item AS before
            ON (before.tenant, before.agent, before.kind, before.name, before.change_id)
               = (prior.tenant, prior.agent, prior.kind, prior.name, prior.change_id)
           AND before.delete_time IS NULL
 ORDER BY waiting.tenant, waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.piece;

-- name: keep_vectors
-- Store embeddings of one tenant, each in the nearest list, if there are lists. Returns the chunks that got one: not those that
-- were deleted meanwhile, or are no longer embedded together with the passage that was used. This statement waits for no lock,
-- since one thread embeds all levels and a lower one must not wait for a deletion above: what is locked stays queued.
WITH made AS MATERIALIZED (
    SELECT made.*
      FROM jsonb_to_recordset(%(made)s) AS made (agent bigint, kind smallint, name text, change_id uuid, number integer,
                                                 prior uuid, signs bit(384), vector smallint[])
),
unlocked AS MATERIALIZED (
    SELECT meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
      FROM meaning
     WHERE meaning.tenant = %(tenant)s
       AND (meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
           IN (SELECT made.agent, made.kind, made.name, made.change_id, made.number FROM made)
       AND meaning.embedder IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE meaning AS kept
   SET embedder = %(embedder)s,
       signs    = made.signs,
       vector   = made.vector,
       list     = (
           SELECT nearest.number
             FROM embedding_list AS nearest
            WHERE (nearest.tenant, nearest.agent, nearest.kind, nearest.embedder)
                  = (%(tenant)s, kept.agent, kept.kind, %(embedder)s)
              AND nearest.signs IS NOT NULL
              AND NOT nearest.is_retired
            ORDER BY bit_count(nearest.signs # made.signs), nearest.number
            LIMIT 1
       )
  FROM made
       JOIN unlocked
            ON (unlocked.agent, unlocked.kind, unlocked.name, unlocked.change_id, unlocked.piece)
               = (made.agent, made.kind, made.name, made.change_id, made.number)
 WHERE kept.tenant = %(tenant)s
   AND (kept.agent, kept.kind, kept.name, kept.change_id, kept.piece)
       = (made.agent, made.kind, made.name, made.change_id, made.number)
   AND kept.prior IS NOT DISTINCT FROM made.prior
RETURNING kept.agent, kept.kind, kept.name, kept.change_id, kept.piece AS number;

-- name: queue_kept
-- Queue some chunks of one tenant for a model at an address.
INSERT INTO remote_embedding AS queued (tenant, agent, kind, name, change_id, number, model, is_missing)
SELECT %(tenant)s, kept.agent, kept.kind, kept.name, kept.change_id, kept.number, %(model)s, FALSE
  FROM jsonb_to_recordset(%(kept)s) AS kept (agent bigint, kind smallint, name text, change_id uuid, number integer)
    ON CONFLICT DO NOTHING;

-- name: next_tenant
-- The first tenant with chunks after a given one, or no row.
SELECT meaning.tenant
  FROM meaning
 WHERE meaning.tenant > %(tenant)s
 ORDER BY meaning.tenant
 LIMIT 1;

-- name: last_of_batch
-- The last of a tenant's next chunks after a given one, or no row if there are no more.
SELECT batch.tenant, batch.agent, batch.kind, batch.name, batch.change_id, batch.piece AS number
  FROM (
           SELECT meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
             FROM meaning
            WHERE meaning.tenant = %(tenant)s
              AND (meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
                  > (%(agent)s, %(kind)s, %(name)s, %(change_id)s, %(number)s)
            ORDER BY meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
            LIMIT %(most)s
       ) AS batch
 ORDER BY batch.agent DESC, batch.kind DESC, batch.name DESC, batch.change_id DESC, batch.piece DESC
 LIMIT 1;

-- name: queue_missing
-- Queue those of a batch of a tenant's chunks that have no embedding by a model at an address and do not wait for one. They are
-- locked, so that none is deleted meanwhile; those that are being deleted are skipped.
WITH missing AS MATERIALIZED (
    SELECT meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
      FROM meaning
     WHERE meaning.tenant = %(tenant)s
       AND (meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
           > (%(agent)s, %(kind)s, %(name)s, %(change_id)s, %(number)s)
       AND (meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
           <= (%(last_agent)s, %(last_kind)s, %(last_name)s, %(last_change_id)s, %(last_number)s)
       AND meaning.embedder IS NOT NULL
       AND NOT EXISTS (
               SELECT
                 FROM remote_embedding AS present
                WHERE (present.tenant, present.agent, present.kind, present.name, present.change_id, present.number)
                      = (meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
                  AND present.model = %(model)s
                  -- implied, and stated because it bounds what a hash join reads
                  AND (present.agent, present.kind, present.name, present.change_id, present.number)
                      > (%(agent)s, %(kind)s, %(name)s, %(change_id)s, %(number)s)
                  AND (present.agent, present.kind, present.name, present.change_id, present.number)
                      <= (%(last_agent)s, %(last_kind)s, %(last_name)s, %(last_change_id)s, %(last_number)s)
           )
       FOR KEY SHARE OF meaning SKIP LOCKED
)
INSERT INTO remote_embedding AS queued (tenant, agent, kind, name, change_id, number, model, is_missing)
SELECT %(tenant)s, missing.agent, missing.kind, missing.name, missing.change_id, missing.piece, %(model)s, TRUE
  FROM missing
    ON CONFLICT DO NOTHING;

-- name: keep_remote_vectors
-- Store embeddings of one tenant by a model at an address. Not of chunks that were deleted meanwhile, nor of those whose text
-- included a passage that is deleted, or is being deleted: a deletion locks the item first, so it finds what is stored here. This
-- statement waits for no lock, so that no deletion deadlocks with it: what is locked stays queued.
WITH made AS MATERIALIZED (
    SELECT made.*
      FROM jsonb_to_recordset(%(made)s) AS made (agent bigint, kind smallint, name text, change_id uuid, number integer,
                                                 prior_name text, prior uuid, signs varbit, vector smallint[])
),
prior AS MATERIALIZED (
    SELECT item.agent, item.kind, item.name, item.change_id
      FROM item
     WHERE item.tenant = %(tenant)s
       AND (item.agent, item.kind, item.name, item.change_id)
           IN (SELECT made.agent, made.kind, made.prior_name, made.prior FROM made)
       AND item.delete_time IS NULL
       FOR SHARE SKIP LOCKED
),
queued AS MATERIALIZED (
    SELECT waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.number
      FROM remote_embedding AS waiting
     WHERE waiting.tenant = %(tenant)s
       AND (waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.number)
           IN (SELECT made.agent, made.kind, made.name, made.change_id, made.number FROM made)
       AND waiting.model = %(model)s
       AND waiting.signs IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE remote_embedding AS kept
   SET prior_name = made.prior_name,
       signs      = made.signs,
       vector     = made.vector
  FROM made
       JOIN queued USING (agent, kind, name, change_id, number)
       LEFT JOIN prior
            ON (prior.agent, prior.kind, prior.name, prior.change_id) = (made.agent, made.kind, made.prior_name, made.prior)
 WHERE kept.tenant = %(tenant)s
   AND (kept.agent, kept.kind, kept.name, kept.change_id, kept.number)
       = (made.agent, made.kind, made.name, made.change_id, made.number)
   AND kept.model = %(model)s
   AND (made.prior IS NULL OR prior.change_id IS NOT NULL);
