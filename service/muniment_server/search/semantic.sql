-- Search by embeddings, as the role of a level. See embedder/queue.sql for how embeddings are made.

-- name: search_embeddings
-- The chunks most similar to the query, after the shadow and the filters: the best one of each name, with its
-- similarity in millionths. First signs are compared, then the vectors of the chunks with the most signs in common
-- (most). If an agent has lists of embeddings, the signs compared are those in the nearest lists (percent of all
-- visible lists), in lists without a center, and of embeddings that are in no list. bound: how many of the nearest are
-- kept, or null for all. looked_at: how many were kept. skipped: whether lists were left out. With a bound or skipped
-- lists, the shadow and the filters may leave too few: then run the query again without a bound, and with all lists.
-- Only embeddings of one model are compared: embedder is the built-in one, model one at an address; one of the two is
-- null. turn_factor: as in search_items. by_named_author: whether the query names its author (authors); false if its
-- own text does, too (marks.py). growing: chunks that were found without an embedding of the model still wait, so the
-- built-in one is to be asked instead.
WITH list AS MATERIALIZED (
    SELECT list.number,
           list.signs IS NULL
           OR 100 * row_number() OVER (ORDER BY bit_count(list.signs::varbit # %(signs)s::varbit), list.number)
              < %(percent)s * count(*) OVER () + 100 AS is_near
      FROM visible_embedding_list AS list
     WHERE (list.kind, list.embedder) = (%(kind)s, %(embedder)s)
),
nearest AS MATERIALIZED (
    SELECT each.kind, each.name, each.label, each.change_id, each.piece,
           bit_count(each.signs # %(signs)s::varbit) AS distance
      FROM (
               SELECT built_in.kind, built_in.name, built_in.label, built_in.change_id, built_in.piece,
                      built_in.signs::varbit AS signs
                 FROM visible_meaning AS built_in
                WHERE (built_in.kind, built_in.embedder) = (%(kind)s, %(embedder)s)
                  AND built_in.list IS NULL
                UNION ALL
               SELECT listed.kind, listed.name, listed.label, listed.change_id, listed.piece, listed.signs::varbit
                 FROM visible_meaning AS listed
                WHERE (listed.kind, listed.embedder) = (%(kind)s, %(embedder)s)
                  AND listed.list = ANY(ARRAY(SELECT list.number FROM list WHERE list.is_near))
                UNION ALL
               SELECT remote.kind, remote.name, remote.label, remote.change_id, remote.number, remote.signs
                 FROM visible_remote_embedding AS remote
                WHERE (remote.kind, remote.model) = (%(kind)s, %(model)s)
                  AND remote.signs IS NOT NULL
           ) AS each
     ORDER BY distance, each.name, each.label, each.piece
     LIMIT %(bound)s
),
seen AS MATERIALIZED (
    SELECT nearest.kind, nearest.name, nearest.change_id, nearest.piece, chunk.start, chunk.size,
           CASE WHEN chunk.is_whole THEN chunk.thread END AS thread, chunk.place,
           CASE WHEN chunk.thread IS NOT NULL AND chunk.is_whole
                THEN 20 * CASE WHEN turn.by_named_author THEN 6 ELSE 5 END
                     * CASE WHEN chunk.stems @@ '''@?'''::tsquery THEN 9 ELSE 10 END * chunk.size / (chunk.size + 30)
                ELSE 1000 END AS turn_factor,
           turn.by_named_author
      FROM nearest
           CROSS JOIN LATERAL ( -- the generic plan of a plain join assumes selective filters and reads all chunks
               SELECT chunk.*
                 FROM visible_chunk AS chunk
                WHERE (chunk.kind, chunk.name, chunk.change_id, chunk.piece)
                      = (nearest.kind, nearest.name, nearest.change_id, nearest.piece)
                LIMIT 1
           ) AS chunk
           CROSS JOIN LATERAL (SELECT coalesce(chunk.stems @@ %(authors)s::tsquery, FALSE) AS by_named_author) AS turn
     WHERE chunk.tier = %(tier)s
       AND chunk.name >= %(name_prefix)s AND chunk.name < %(after_prefix)s
       AND (%(thread)s::text IS NULL OR chunk.thread = %(thread)s)
       AND (%(start_time)s::timestamptz IS NULL OR chunk.event_time >= %(start_time)s)
       AND (%(end_time)s::timestamptz IS NULL OR chunk.event_time < %(end_time)s)
       AND CASE WHEN %(any_tag)s THEN chunk.tags && %(tags)s::text[] ELSE chunk.tags @> %(tags)s::text[] END
       AND 0 = (
               SELECT count(*)
                 FROM visible AS above
                WHERE (above.kind, above.name) = (chunk.kind, chunk.name)
                  AND above.label > nearest.label
           )
     ORDER BY nearest.distance, nearest.name, nearest.label, nearest.piece
     LIMIT %(most)s
),
similarity AS (
    SELECT DISTINCT ON (seen.name) seen.name, seen.change_id, seen.start, seen.size, seen.thread, seen.place,
           seen.turn_factor, seen.by_named_author, pair.similarity
      FROM seen
           LEFT JOIN visible_meaning AS built_in
                ON (built_in.kind, built_in.name, built_in.change_id, built_in.piece, built_in.embedder)
                   = (seen.kind, seen.name, seen.change_id, seen.piece, %(embedder)s)
           LEFT JOIN visible_remote_embedding AS remote
                ON (remote.kind, remote.name, remote.change_id, remote.number, remote.model)
                   = (seen.kind, seen.name, seen.change_id, seen.piece, %(model)s)
           CROSS JOIN LATERAL (
               SELECT sum(component.one * component.other) AS similarity
                 FROM ( -- unnest itself in FROM would first store both vectors
                          SELECT unnest(coalesce(built_in.vector, remote.vector)) AS one,
                                 unnest(%(vector)s::integer[]) AS other
                      ) AS component
           ) AS pair
     ORDER BY seen.name, pair.similarity DESC, seen.piece
)
SELECT (SELECT count(*) FROM nearest) AS looked_at, (SELECT count(*) FROM seen) AS compared,
       EXISTS (SELECT FROM list WHERE NOT list.is_near) AS skipped,
       EXISTS (
           SELECT
             FROM visible_remote_embedding AS waiting
            WHERE (waiting.kind, waiting.model) = (%(kind)s, %(model)s)
              AND waiting.signs IS NULL
              AND waiting.is_missing
       ) AS growing,
       similarity.*
  FROM session
       LEFT JOIN similarity ON TRUE
 ORDER BY similarity.similarity DESC, similarity.name;
