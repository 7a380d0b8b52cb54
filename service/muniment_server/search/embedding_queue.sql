-- How the embedder, as the role of one level, reads the texts of that level's own chunks, of all agents, and stores their
-- embeddings. It has no session: these queries are the one exception to the session predicate.

-- name: queue_length
-- Counted up to a limit, so that a long queue does not make this slow.
SELECT count(*)
  FROM (
           SELECT
             FROM meaning
            WHERE meaning.embedder IS NULL
            LIMIT 100000
       ) AS queued;

-- name: waiting_chunks
-- A batch of queued chunks, with the text to embed: the passage before and the chunk itself, each after its author or key.
-- The batch begins after a given agent, so that agents take turns.
WITH waiting AS MATERIALIZED ( -- computed first: a plan that joins all queued chunks takes half a second for 1,500
    SELECT meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece, meaning.prior
      FROM meaning
     WHERE meaning.embedder IS NULL
       AND (meaning.tenant, meaning.agent) > (%(tenant)s, %(agent)s)
     ORDER BY meaning.tenant, meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece
     LIMIT %(most)s
)
SELECT waiting.tenant, waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.piece AS number, waiting.prior,
       concat_ws(E'\n', nullif(concat_ws(': ', before.author, before.content), ''),
                 concat_ws(': ', CASE WHEN item.kind = 1 THEN item.name ELSE item.author END,
                           substr(item.content, chunk.start + 1, chunk.size))) AS text
  FROM waiting
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
              AND earlier.change_id = waiting.prior
            ORDER BY earlier.place DESC
            LIMIT 1
       ) AS prior ON TRUE
       LEFT JOIN item AS before
            ON (before.tenant, before.agent, before.kind, before.name, before.change_id)
               = (prior.tenant, prior.agent, prior.kind, prior.name, prior.change_id)
           AND before.delete_time IS NULL
 ORDER BY waiting.tenant, waiting.agent, waiting.kind, waiting.name, waiting.change_id, waiting.piece;

-- name: keep_vectors
-- Store embeddings. Chunks that were deleted meanwhile get none; nor do those that are no longer embedded together with the
-- passage that was used.
UPDATE meaning AS meant
   SET embedder = %(embedder)s,
       signs    = made.signs,
       vector   = made.vector
  FROM jsonb_to_recordset(%(made)s) AS made (tenant bigint, agent bigint, kind smallint, name text, change_id uuid,
                                             number integer, prior uuid, signs bit(384), vector smallint[])
 WHERE (meant.tenant, meant.agent, meant.kind, meant.name, meant.change_id, meant.piece)
       = (made.tenant, made.agent, made.kind, made.name, made.change_id, made.number)
   AND meant.prior IS NOT DISTINCT FROM made.prior
   AND meant.embedder IS NULL;
