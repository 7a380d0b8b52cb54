-- The half of search that goes by meaning, as the role of one level. See search.sql, and embedding.sql for how vectors are made.

-- name: queue_pieces
-- Let the pieces of some names wait for their vectors. After index_items, in its transaction. A short turn waits together with
-- the one before it at its own level, unless that one is to expire: nothing of it may be left elsewhere.
-- The turn before is locked: if somebody is deleting it, this waits and then finds it gone; if somebody deletes it later, they
-- wait for this to commit, and then clear the vector.
WITH fence AS MATERIALIZED (
    SELECT session.agent
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
),
own AS MATERIALIZED (
    SELECT own.agent, own.kind, own.name, own.change_id, own.piece, prior.name AS prior_name, prior.change_id AS prior
      FROM chunk AS own
           LEFT JOIN LATERAL (
               SELECT earlier.name, earlier.change_id, earlier.is_whole, earlier.expire_time
                 FROM chunk AS earlier
                WHERE earlier.tenant = %(tenant)s
                  AND (earlier.agent, earlier.thread, earlier.piece) = (own.agent, own.thread, 0)
                  AND earlier.place < own.place
                ORDER BY earlier.place DESC
                LIMIT 1
           ) AS prior ON own.is_whole AND prior.is_whole AND prior.expire_time IS NULL
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND own.kind = %(kind)s
       AND own.name = ANY(%(names)s)
       AND own.change_id = ANY(%(changes)s::uuid[]) -- what this transaction made: others may delete the rest meanwhile
),
prior AS MATERIALIZED ( -- by name, or two that lock many deadlock
    SELECT prior.change_id
      FROM item AS prior
     WHERE prior.tenant = %(tenant)s
       AND prior.agent = (SELECT fence.agent FROM fence)
       AND prior.kind = %(kind)s
       AND prior.name = ANY(ARRAY(SELECT own.prior_name FROM own))
       AND prior.change_id = ANY(ARRAY(SELECT own.prior FROM own))
       AND prior.delete_time IS NULL
     ORDER BY prior.name
       FOR SHARE
),
waiting AS (
    INSERT INTO meaning AS waiting (tenant, agent, kind, name, change_id, piece, prior)
    SELECT %(tenant)s, own.agent, own.kind, own.name, own.change_id, own.piece, prior.change_id
      FROM own
           LEFT JOIN prior ON prior.change_id = own.prior
        ON CONFLICT DO NOTHING
)
SELECT fence.agent
  FROM fence;

-- name: search_meaning
-- The pieces that mean most like the query, after the shadow and the filters: the best of each name, with how like it is, in millionths.
-- First the signs of all are compared, then the vectors of the 200 with most signs in common. looked_at: of how many signs were.
-- With a bound, those that the shadow and the filters leave out may be most of it: who finds too few asks again without.
WITH fence AS MATERIALIZED (
    SELECT session.agent
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
),
nearest AS MATERIALIZED (
    SELECT meaning.agent, meaning.kind, meaning.name, meaning.level, meaning.change_id, meaning.piece,
           bit_count(meaning.signs # %(signs)s::bit(384)) AS distance
      FROM visible_meaning AS meaning
     WHERE meaning.tenant = %(tenant)s
       AND (meaning.agent, meaning.kind, meaning.embedder) = ((SELECT fence.agent FROM fence), %(kind)s, %(embedder)s)
     ORDER BY distance, meaning.name, meaning.level, meaning.piece
     LIMIT %(bound)s
),
seen AS MATERIALIZED (
    SELECT nearest.agent, nearest.kind, nearest.name, nearest.change_id, nearest.piece, chunk.start, chunk.size
      FROM nearest
           JOIN visible_chunk AS chunk
                ON chunk.tenant = %(tenant)s
               AND (chunk.agent, chunk.kind, chunk.name, chunk.change_id, chunk.piece)
                   = (nearest.agent, nearest.kind, nearest.name, nearest.change_id, nearest.piece)
     WHERE chunk.tier = %(tier)s
       AND (%(thread)s::text IS NULL OR chunk.thread = %(thread)s)
       AND (%(start_time)s::timestamptz IS NULL OR chunk.event_time >= %(start_time)s)
       AND (%(end_time)s::timestamptz IS NULL OR chunk.event_time < %(end_time)s)
       AND CASE WHEN %(any_tag)s THEN chunk.tags && %(tags)s::text[] ELSE chunk.tags @> %(tags)s::text[] END
       AND 0 = (
               SELECT count(*)
                 FROM visible AS above
                WHERE above.tenant = %(tenant)s
                  AND (above.agent, above.kind, above.name) = (nearest.agent, nearest.kind, nearest.name)
                  AND above.level > nearest.level
           )
     ORDER BY nearest.distance, nearest.name, nearest.level, nearest.piece
     LIMIT %(most)s
),
likeness AS (
    SELECT DISTINCT ON (seen.name) seen.name, seen.change_id, seen.start, seen.size, pair.likeness
      FROM seen
           JOIN visible_meaning AS meaning
                ON meaning.tenant = %(tenant)s
               AND (meaning.agent, meaning.kind, meaning.name, meaning.change_id, meaning.piece)
                   = (seen.agent, seen.kind, seen.name, seen.change_id, seen.piece)
           CROSS JOIN LATERAL (
               SELECT sum(one * other) AS likeness
                 FROM unnest(meaning.vector, %(vector)s::integer[]) AS component (one, other)
           ) AS pair
     ORDER BY seen.name, pair.likeness DESC, seen.piece
)
SELECT (SELECT count(*) FROM nearest) AS looked_at, (SELECT count(*) FROM seen) AS compared,
       likeness.name, likeness.change_id, likeness.start, likeness.size, likeness.likeness
  FROM fence
       LEFT JOIN likeness ON TRUE
 ORDER BY likeness.likeness DESC, likeness.name;
