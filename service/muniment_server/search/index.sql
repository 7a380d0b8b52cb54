-- How the search index is maintained, as the role of a level: in the transaction of each write, after it.

-- name: let_entries_wait
-- In this transaction, let more index entries wait before they are merged into the index. The list of a common word is then
-- rewritten once for about 160 passages instead of 40.
SELECT set_config('gin_pending_list_limit', '512kB', TRUE)
  FROM session;

-- name: index_items
-- Make the index of some names match their live own-level versions. Runs after the write in its transaction, under its
-- locks, and is a separate statement, because one that waits for a lock does not see the changes that it waited for.
-- New chunks are queued for embedding, except those of passages: see queue_chunks.
WITH live AS MATERIALIZED (
    SELECT own.*
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND own.kind = %(kind)s
       AND own.name = ANY(%(names)s)
       AND own.delete_time IS NULL
),
deleted AS (
    DELETE FROM chunk AS old
     WHERE old.tenant = %(tenant)s
       AND old.agent = (SELECT session.agent FROM session)
       AND old.kind = %(kind)s
       AND old.name = ANY(%(names)s)
       AND NOT EXISTS (SELECT FROM live WHERE live.change_id = old.change_id)
 RETURNING old.change_id, old.language, old.stem_count, old.gram_count
),
cleared AS ( -- embeddings that include a deleted item's text are made again without it
    UPDATE meaning AS cleared
       SET prior = NULL, embedder = NULL, signs = NULL, vector = NULL, list = NULL
      FROM deleted
     WHERE cleared.tenant = %(tenant)s
       AND cleared.agent = (SELECT session.agent FROM session)
       AND cleared.prior = deleted.change_id
),
text AS MATERIALIZED (
    SELECT live.*, part.*, jsonb_array_length(chunks) = 1 AS is_whole,
           coalesce(
               (
                   SELECT coalesce(%(stemmers)s::text::jsonb ->> lower(split_part(agent.language, '-', 1)), 'simple')
                     FROM agent
                    WHERE agent.language <> ''
               ),
               given.language
           ) AS language,
           concat_ws(' ', part.header, to_char(coalesce(live.event_time, live.update_time) AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'))
           || E'\n' || substr(live.content, part.start + 1, part.size) AS words,
           CASE WHEN live.thread IS NOT NULL
                THEN to_char(live.event_time AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS')
                     || to_char(live.create_time AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') || live.name END AS place,
           '@' || live.agent || ':' || live.kind AS scope
      FROM live
           JOIN jsonb_to_recordset(%(texts)s) AS given (change_id uuid, language text, chunks jsonb)
                USING (change_id)
           CROSS JOIN jsonb_to_recordset(given.chunks)
                      AS part (number int, start int, size int, sample int, header text, grams text[], marks text[])
),
new AS (
    INSERT INTO chunk AS new (tenant, agent, kind, name, change_id, piece, is_whole, start, size, tier, tags, thread, place,
                              event_time, expire_time, language, sample, stems, grams, stem_count, gram_count)
    SELECT %(tenant)s, text.agent, text.kind, text.name, text.change_id, text.number, text.is_whole, text.start, text.size,
           text.tier, text.tags, text.thread, text.place, text.event_time, text.expire_time, text.language, text.sample,
           setweight(setweight(setweight(word, 'C', stem.twice), 'B', stem.thrice), 'A', stem.often)
           || array_to_tsvector(text.marks || text.scope), array_to_tsvector(text.grams || text.scope),
           stem.count, cardinality(text.grams)
      FROM text
           CROSS JOIN to_tsvector(('vault.' || text.language)::regconfig, text.words) AS word
           CROSS JOIN LATERAL ( -- a stem's frequency is its weight label: looking that up costs a tenth of unpacking positions
               SELECT coalesce(sum(times), 0) AS count,
                      coalesce(array_agg(lexeme) FILTER (WHERE times = 2), '{}') AS twice,
                      coalesce(array_agg(lexeme) FILTER (WHERE times = 3), '{}') AS thrice,
                      coalesce(array_agg(lexeme) FILTER (WHERE times > 3), '{}') AS often
                 FROM (SELECT lexeme, cardinality(positions) AS times FROM unnest(word)) AS stem
           ) AS stem
        ON CONFLICT DO NOTHING -- during a rebuild, others may have indexed new items
 RETURNING new.agent, new.name, new.change_id, new.piece, new.language, new.stem_count, new.gram_count
),
waiting AS (
    INSERT INTO meaning AS a (tenant, agent, kind, name, change_id, piece)
    SELECT %(tenant)s, new.agent, %(kind)s, new.name, new.change_id, new.piece
      FROM new
     WHERE %(kind)s <> 4
),
delta AS (
    SELECT new.language, 1 AS chunks, new.stem_count AS stems, new.gram_count AS grams
      FROM new
     UNION ALL
    SELECT deleted.language, -1, -deleted.stem_count, -deleted.gram_count
      FROM deleted
),
counted AS (
    INSERT INTO stat AS own (tenant, agent, kind, language, change_id, chunks, stems, grams)
    SELECT %(tenant)s, session.agent, %(kind)s, delta.language, %(change_id)s, sum(delta.chunks), sum(delta.stems), sum(delta.grams)
      FROM session
           CROSS JOIN delta
     GROUP BY session.agent, delta.language
    HAVING (sum(delta.chunks), sum(delta.stems), sum(delta.grams)) <> (0, 0, 0)
)
SELECT session.agent
  FROM session;

-- name: fold_stats
-- Compact the statistics of one kind at the own level. Never waits: rows that another transaction compacts are skipped.
WITH locked AS MATERIALIZED (
    SELECT own.language, own.change_id
      FROM stat AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND own.kind = %(kind)s
       FOR UPDATE SKIP LOCKED
),
deleted AS (
    DELETE FROM stat AS deleted
     USING locked
     WHERE deleted.tenant = %(tenant)s
       AND deleted.agent = (SELECT session.agent FROM session)
       AND deleted.kind = %(kind)s
       AND (deleted.language, deleted.change_id) = (locked.language, locked.change_id)
 RETURNING deleted.agent, deleted.language, deleted.chunks, deleted.stems, deleted.grams
),
folded AS (
    INSERT INTO stat AS folded (tenant, agent, kind, language, change_id, chunks, stems, grams)
    SELECT %(tenant)s, deleted.agent, %(kind)s, deleted.language, %(fold_id)s, sum(deleted.chunks), sum(deleted.stems), sum(deleted.grams)
      FROM deleted
     GROUP BY deleted.agent, deleted.language
)
SELECT session.agent
  FROM session;

-- name: queue_chunks
-- Queue the chunks of some passages for embedding. After index_items, in its transaction. A short passage of a thread is embedded
-- together with the one before it at its own level, unless that one expires: no text of it may remain elsewhere.
-- The passage before is locked: if it is being deleted, this waits and then finds no row; if it is deleted later, the delete
-- waits for this to commit, and then clears the embedding.
WITH own AS MATERIALIZED (
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
       AND own.agent = (SELECT session.agent FROM session)
       AND own.kind = %(kind)s
       AND own.name = ANY(%(names)s)
       AND own.change_id = ANY(%(changes)s::uuid[]) -- only chunks of this transaction: others may delete the rest meanwhile
),
prior AS MATERIALIZED ( -- locked in the order of names, so that two transactions do not deadlock
    SELECT prior.change_id
      FROM item AS prior
     WHERE prior.tenant = %(tenant)s
       AND prior.agent = (SELECT session.agent FROM session)
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
SELECT session.agent
  FROM session;

-- name: forget_passages
-- Delete the embeddings by models at addresses that include the text of some deleted passages. After index_items, in its
-- transaction: whoever stores such an embedding locks the passage first, so either this finds it or it is not stored. The
-- passages after them are embedded again, without that text, once the built-in model has done so.
WITH forgotten AS (
    DELETE FROM remote_embedding AS forgotten
     WHERE forgotten.tenant = %(tenant)s
       AND forgotten.agent = (SELECT session.agent FROM session)
       AND forgotten.kind = %(kind)s
       AND forgotten.prior_name = ANY(%(names)s)
)
SELECT session.agent
  FROM session;
