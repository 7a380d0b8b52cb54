-- What search finds, as the role of one level: how it is made after each write, and how it is looked through. See items.sql.
-- The scope `@agent:kind` is a word of every chunk: words are looked for together with it. So that no index is chosen that
-- reads all chunks of an agent, chunks are not asked for by `agent =`, but by IS NOT DISTINCT FROM, which no index serves.

-- name: index_items
-- Index the live own-level versions of some names, and nothing else of these names. In the transaction of the write, after it:
-- under its locks, and in a statement of its own, since one that waits for a lock does not see what it waited for.
WITH fence AS MATERIALIZED (
    SELECT session.agent
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
),
given AS MATERIALIZED (
    SELECT given.*
      FROM jsonb_to_recordset(%(texts)s) AS given (name text, change_id uuid, language text, pieces jsonb)
),
live AS MATERIALIZED (
    SELECT own.*
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND own.kind = %(kind)s
       AND own.name = ANY(%(names)s)
       AND own.delete_time IS NULL
),
stated AS MATERIALIZED (
    SELECT coalesce(%(stemmers)s::jsonb ->> lower(split_part(agent.language, '-', 1)), 'simple') AS language
      FROM agent
     WHERE agent.tenant = %(tenant)s
       AND agent.session_id = %(session_id)s
       AND agent.language <> ''
),
gone AS (
    DELETE FROM chunk AS gone
     WHERE gone.tenant = %(tenant)s
       AND gone.agent = (SELECT fence.agent FROM fence)
       AND gone.kind = %(kind)s
       AND gone.name = ANY(%(names)s)
       AND NOT EXISTS (SELECT FROM live WHERE (live.name, live.change_id) = (gone.name, gone.change_id))
 RETURNING gone.change_id, gone.language, gone.stem_count, gone.gram_count
),
parted AS ( -- what was made with the text of another is made without it
    UPDATE meaning AS parted
       SET prior = NULL, embedder = NULL, signs = NULL, vector = NULL
      FROM gone
     WHERE parted.tenant = %(tenant)s
       AND parted.agent = (SELECT fence.agent FROM fence)
       AND parted.prior = gone.change_id
),
text AS MATERIALIZED (
    SELECT live.*, piece.number, piece.start, piece.size, piece.sample, piece.grams, jsonb_array_length(given.pieces) = 1 AS is_whole,
           coalesce((SELECT stated.language FROM stated), given.language) AS language,
           concat_ws(' ', piece.header, to_char(coalesce(live.event_time, live.update_time) AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'))
           || E'\n' || substr(live.content, piece.start + 1, piece.size) AS words,
           CASE WHEN live.thread IS NOT NULL
                THEN to_char(live.event_time AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS')
                     || to_char(live.create_time AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') || live.name END AS place,
           '@' || live.agent || ':' || live.kind AS scope
      FROM live
           JOIN given ON (given.name, given.change_id) = (live.name, live.change_id)
           CROSS JOIN jsonb_to_recordset(given.pieces)
                      AS piece (number integer, start integer, size integer, sample integer, header text, grams text[])
),
made AS (
    INSERT INTO chunk AS made (tenant, agent, kind, name, change_id, piece, is_whole, start, size, tier, tags, thread, place,
                               event_time, expire_time, language, sample, stems, grams, stem_count, gram_count)
    SELECT %(tenant)s, text.agent, text.kind, text.name, text.change_id, text.number, text.is_whole, text.start, text.size,
           text.tier, text.tags, text.thread, text.place, text.event_time, text.expire_time, text.language, text.sample,
           setweight(setweight(setweight(word.stems, 'C', stem.twice), 'B', stem.thrice), 'A', stem.often)
           || array_to_tsvector(ARRAY[text.scope]), array_to_tsvector(text.grams || text.scope),
           stem.count, cardinality(text.grams)
      FROM text
           CROSS JOIN LATERAL (SELECT to_tsvector(('vault.' || text.language)::regconfig, text.words) AS stems) AS word
           CROSS JOIN LATERAL ( -- how often is the label of a stem: to look a label up costs a tenth of unpacking positions
               SELECT coalesce(sum(cardinality(stem.positions)), 0) AS count,
                      coalesce(array_agg(stem.lexeme) FILTER (WHERE cardinality(stem.positions) = 2), '{}') AS twice,
                      coalesce(array_agg(stem.lexeme) FILTER (WHERE cardinality(stem.positions) = 3), '{}') AS thrice,
                      coalesce(array_agg(stem.lexeme) FILTER (WHERE cardinality(stem.positions) > 3), '{}') AS often
                 FROM unnest(word.stems) AS stem
           ) AS stem
        ON CONFLICT DO NOTHING -- whoever makes the index anew may meet what was written meanwhile
 RETURNING made.language, made.stem_count, made.gram_count
),
moved AS (
    SELECT made.language, 1 AS chunks, made.stem_count AS stems, made.gram_count AS grams
      FROM made
     UNION ALL
    SELECT gone.language, -1, -gone.stem_count, -gone.gram_count
      FROM gone
),
counted AS (
    INSERT INTO stat AS counted (tenant, agent, kind, language, change_id, chunks, stems, grams)
    SELECT %(tenant)s, fence.agent, %(kind)s, moved.language, %(change_id)s, sum(moved.chunks), sum(moved.stems), sum(moved.grams)
      FROM fence
           CROSS JOIN moved
     GROUP BY fence.agent, moved.language
    HAVING (sum(moved.chunks), sum(moved.stems), sum(moved.grams)) <> (0, 0, 0)
)
SELECT fence.agent
  FROM fence;

-- name: fold_stats
-- Add up what the changes of one kind at the own level have counted. Never waits: what another folds is left to it.
WITH fence AS MATERIALIZED (
    SELECT session.agent
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
),
taken AS MATERIALIZED (
    SELECT own.language, own.change_id
      FROM stat AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND own.kind = %(kind)s
       FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM stat AS gone
     USING taken
     WHERE gone.tenant = %(tenant)s
       AND gone.agent = (SELECT fence.agent FROM fence)
       AND gone.kind = %(kind)s
       AND (gone.language, gone.change_id) = (taken.language, taken.change_id)
 RETURNING gone.agent, gone.language, gone.chunks, gone.stems, gone.grams
),
folded AS (
    INSERT INTO stat AS folded (tenant, agent, kind, language, change_id, chunks, stems, grams)
    SELECT %(tenant)s, gone.agent, %(kind)s, gone.language, %(fold_id)s, sum(gone.chunks), sum(gone.stems), sum(gone.grams)
      FROM gone
     GROUP BY gone.agent, gone.language
)
SELECT fence.agent
  FROM fence;

-- name: search_terms
-- The words of a query and in how many visible pieces each occurs, as rows of different kinds (what):
-- `corpus` is the first, how many pieces there are and how long; `stem` and `gram` are words; `stop` is a stem that a language
-- of the agent's items leaves out; `small` is one of %(words)s that such a language leaves out.
-- Words are counted in a sample first, and exactly if the sample shows that they are rare.
WITH fence AS MATERIALIZED (
    SELECT session.agent, '@' || session.agent || ':' || %(kind)s::smallint AS scope
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
),
corpus AS MATERIALIZED (
    SELECT stat.language, sum(stat.chunks)::bigint AS chunks, sum(stat.stems)::bigint AS stems, sum(stat.grams)::bigint AS grams
      FROM visible_stat AS stat
     WHERE stat.tenant = %(tenant)s
       AND (stat.agent, stat.kind) = ((SELECT fence.agent FROM fence), %(kind)s)
     GROUP BY stat.language
    HAVING sum(stat.chunks) > 0
),
spoken AS MATERIALIZED ( -- what the query seems to be in, and what more than a few pieces are in; each costs a parse of it
    SELECT corpus.language
      FROM corpus
     WHERE corpus.language = %(language)s
        OR corpus.chunks * 20 >= (SELECT max(other.chunks) FROM corpus AS other)
     ORDER BY corpus.language = %(language)s DESC, corpus.chunks DESC, corpus.language
     LIMIT 4
),
said AS MATERIALIZED (
    SELECT spoken.language, word.lexeme, word.positions[1] AS place
      FROM spoken
           CROSS JOIN LATERAL unnest(to_tsvector(('vault.' || spoken.language)::regconfig, %(query)s)) AS word
),
kept AS MATERIALIZED (
    SELECT spoken.language, word.lexeme
      FROM spoken
           CROSS JOIN LATERAL unnest(to_tsvector(('pg_catalog.' || spoken.language)::regconfig, %(query)s)) AS word
),
stem AS MATERIALIZED (
    SELECT CASE WHEN bool_or(kept.lexeme IS NULL) THEN 'stop' ELSE 'stem' END AS what, said.lexeme AS text
      FROM said
           LEFT JOIN kept USING (language, lexeme)
     WHERE octet_length(said.lexeme) < 2047 -- as long as a tsvector may hold, a tsquery may not
     GROUP BY said.lexeme
     ORDER BY min(said.place), said.lexeme
     LIMIT %(most_stems)s
),
sample AS MATERIALIZED ( -- by a hash of what is said: which rows these are hangs on the visible ones only, and on no plan
    SELECT chunk.stems, chunk.grams, chunk.sample, chunk.name, chunk.level, chunk.piece
      FROM visible_chunk AS chunk
     WHERE chunk.tenant = %(tenant)s
       AND (chunk.agent, chunk.kind) = ((SELECT fence.agent FROM fence), %(kind)s)
     ORDER BY chunk.sample, chunk.name, chunk.level, chunk.piece
     LIMIT %(most_sampled)s
),
size AS MATERIALIZED (
    SELECT (SELECT count(*) FROM sample) AS sampled, coalesce(sum(corpus.chunks), 0)::bigint AS pieces,
           coalesce(sum(corpus.stems), 0)::bigint AS stems, coalesce(sum(corpus.grams), 0)::bigint AS grams
      FROM corpus
),
gram_sample AS MATERIALIZED (
    SELECT sample.grams
      FROM sample
     ORDER BY sample.sample, sample.name, sample.level, sample.piece
     LIMIT (SELECT CASE WHEN sampled < %(most_sampled)s THEN sampled ELSE greatest(%(few_sampled)s, pieces / 40) END FROM size)
),
asked AS MATERIALIZED ( -- inside quotes nothing is syntax
    SELECT term.what, term.text, ('''' || replace(replace(term.text, '\', '\\'), '''', '''''') || '''')::tsquery AS word
      FROM (SELECT stem.what, stem.text FROM stem UNION ALL SELECT 'gram', unnest(%(grams)s::text[])) AS term
),
counted AS MATERIALIZED (
    SELECT fence.agent, asked.what, asked.text, ('''' || fence.scope || '''')::tsquery && asked.word AS words, size.pieces,
           size.sampled < %(most_sampled)s AS is_all,
           CASE WHEN asked.what = 'gram' THEN (SELECT count(*) FROM gram_sample) ELSE size.sampled END AS sampled,
           CASE WHEN asked.what = 'gram' THEN (SELECT count(*) FROM gram_sample WHERE grams @@ asked.word)
                ELSE (SELECT count(*) FROM sample WHERE stems @@ asked.word) END AS found
      FROM fence
           CROSS JOIN size
           CROSS JOIN asked
)
SELECT 'corpus' AS what, '' AS text, size.pieces, size.stems, size.grams
  FROM fence
       CROSS JOIN size
 UNION ALL
SELECT counted.what, counted.text,
       CASE WHEN counted.is_all THEN counted.found
            WHEN counted.found * counted.pieces
                 > counted.sampled * CASE WHEN counted.what = 'gram' THEN %(most_grams_counted)s::bigint ELSE %(most_stems_counted)s END
            THEN counted.found * counted.pieces / counted.sampled
            WHEN counted.what = 'gram'
            THEN (
                SELECT count(*)
                  FROM visible_chunk AS chunk
                 WHERE chunk.tenant = %(tenant)s
                   AND chunk.agent IS NOT DISTINCT FROM counted.agent
                   AND chunk.grams @@ counted.words
            )
            ELSE (
                SELECT count(*)
                  FROM visible_chunk AS chunk
                 WHERE chunk.tenant = %(tenant)s
                   AND chunk.agent IS NOT DISTINCT FROM counted.agent
                   AND chunk.stems @@ counted.words
            ) END, 0, 0
  FROM counted
 UNION ALL
SELECT 'small', word.text, 0, 0, 0
  FROM unnest(%(words)s::text[]) AS word (text)
 WHERE EXISTS (
           SELECT
             FROM spoken
            WHERE spoken.language <> 'simple'
              AND ts_lexize(('pg_catalog.' || spoken.language || '_stem')::regdictionary, word.text) = '{}'
       );

-- name: search_items
-- The best matches, each name at its highest visible level and by its best piece, filters looked at after the shadow. Nulls: no match.
-- Scores are whole millionths, so that no sum hangs on the order of rows; of equal scores the name decides.
-- In a thread a hit lends 2/5 of its score to the visible neighbours of it, and 1/5 to theirs. bytes: as in list_items.
-- names and meant: the items that search_meaning found, and what each of them scores by it. share: what the best one by words
-- scores by them; the others in proportion. matches: how many items were found by words, or as many as that may be.
WITH fence AS MATERIALIZED (
    SELECT session.agent, ('''@' || session.agent || ':' || %(kind)s::smallint || '''')::tsquery AS scope
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
),
seen AS NOT MATERIALIZED (
    SELECT chunk.*,
           chunk.tier = %(tier)s
           AND (%(thread)s::text IS NULL OR chunk.thread = %(thread)s)
           AND (%(start_time)s::timestamptz IS NULL OR chunk.event_time >= %(start_time)s)
           AND (%(end_time)s::timestamptz IS NULL OR chunk.event_time < %(end_time)s)
           AND CASE WHEN %(any_tag)s THEN chunk.tags && %(tags)s::text[] ELSE chunk.tags @> %(tags)s::text[] END AS passes
      FROM visible_chunk AS chunk
     WHERE chunk.tenant = %(tenant)s
       AND chunk.agent IS NOT DISTINCT FROM (SELECT fence.agent FROM fence)
),
stem AS MATERIALIZED (
    SELECT stem.text::tsquery AS word, (stem.text || ':C')::tsquery AS twice, (stem.text || ':B')::tsquery AS thrice,
           (stem.text || ':A')::tsquery AS often, stem.weight
      FROM unnest(%(stems)s::text[], %(stem_weights)s::float8[]) AS stem (text, weight)
),
gram AS MATERIALIZED (
    SELECT gram.text::tsquery AS word, gram.weight
      FROM unnest(%(grams)s::text[], %(gram_weights)s::float8[]) AS gram (text, weight)
),
scored AS MATERIALIZED ( -- looked up, not unpacked: most words of a piece are none of the query's
    SELECT seen.name, seen.level, seen.piece, seen.start, seen.size, seen.is_whole, seen.agent, seen.thread, seen.place,
           (
               SELECT coalesce(sum((stem.weight * many.times / (many.times + %(damping)s + seen.stem_count * %(stem_slope)s))::integer), 0)
                 FROM stem
                      CROSS JOIN LATERAL (
                          SELECT CASE WHEN seen.stems @@ stem.twice THEN 2 WHEN seen.stems @@ stem.thrice THEN 3
                                      WHEN seen.stems @@ stem.often THEN 5 ELSE 1 END AS times -- 5: four or more, which BM25 hardly tells apart
                      ) AS many
                WHERE seen.stems @@ stem.word
           ) + (
               SELECT coalesce(sum((gram.weight / (1 + %(damping)s + seen.gram_count * %(gram_slope)s))::integer), 0)
                 FROM gram
                WHERE seen.grams @@ gram.word
           ) AS score
      FROM seen
     WHERE seen.passes
       AND (seen.stems @@ (SELECT fence.scope && %(wanted_stems)s::tsquery FROM fence)
            OR seen.grams @@ (SELECT fence.scope && %(wanted_grams)s::tsquery FROM fence))
),
hit AS MATERIALIZED (
    SELECT DISTINCT ON (scored.name, scored.level) scored.*
      FROM scored
     ORDER BY scored.name, scored.level, scored.score DESC, scored.piece
),
top AS MATERIALIZED ( -- the shadow is looked at from the best on, until there are enough
    SELECT ranked.*
      FROM (SELECT hit.* FROM hit ORDER BY hit.score DESC, hit.name, hit.level LIMIT ALL) AS ranked
     WHERE 0 = (
               SELECT count(*)
                 FROM visible AS above
                WHERE above.tenant = %(tenant)s
                  AND (above.agent, above.kind, above.name) = (ranked.agent, %(kind)s, ranked.name)
                  AND above.level > ranked.level
           )
     ORDER BY ranked.score DESC, ranked.name, ranked.level
     LIMIT greatest(%(limit)s::bigint, %(most_lenders)s)
),
near AS NOT MATERIALIZED ( -- the first pieces of what stands in threads, after the shadow
    SELECT seen.*
      FROM seen
     WHERE seen.piece = 0
       AND 0 = (
               SELECT count(*)
                 FROM visible AS above
                WHERE above.tenant = %(tenant)s
                  AND (above.agent, above.kind, above.name) = (seen.agent, %(kind)s, seen.name)
                  AND above.level > seen.level
           )
),
lender AS ( -- short turns of a thread, the best
    SELECT top.agent, top.thread, top.place, top.score
      FROM top
     WHERE top.thread IS NOT NULL
       AND top.is_whole
     ORDER BY top.score DESC, top.name
     LIMIT %(most_lenders)s
),
lent AS MATERIALIZED (
    SELECT taker.name, taker.level, sum(lender.score * 2 / (5 * taker.distance)) AS score
      FROM lender
           CROSS JOIN LATERAL (
               (
                   SELECT near.name, near.level, near.passes AND near.is_whole AS takes,
                          row_number() OVER (ORDER BY near.place) AS distance
                     FROM near
                    WHERE (near.agent, near.thread) = (lender.agent, lender.thread)
                      AND near.place > lender.place
                    ORDER BY near.place
                    LIMIT 2
               )
                UNION ALL
               (
                   SELECT near.name, near.level, near.passes AND near.is_whole,
                          row_number() OVER (ORDER BY near.place DESC)
                     FROM near
                    WHERE (near.agent, near.thread) = (lender.agent, lender.thread)
                      AND near.place < lender.place
                    ORDER BY near.place DESC
                    LIMIT 2
               )
           ) AS taker
     WHERE taker.takes
     GROUP BY taker.name, taker.level
),
said AS (
    SELECT name, hit.start, hit.size, coalesce(hit.score, 0) + coalesce(lent.score, 0) AS score
      FROM (
               SELECT hit.*
                 FROM hit
                WHERE (hit.name, hit.level) IN (SELECT top.name, top.level FROM top UNION ALL SELECT lent.name, lent.level FROM lent)
           ) AS hit
           FULL JOIN lent USING (name, level)
),
best AS (
    SELECT name, said.start, said.size,
           coalesce(round(%(share)s * said.score / nullif(max(said.score) OVER (), 0)), 0) + coalesce(meant.score, 0) AS score
      FROM said
           FULL JOIN unnest(%(names)s::text[], %(meant)s::integer[]) AS meant (name, score) USING (name)
     ORDER BY score DESC, name
     LIMIT %(limit)s
)
SELECT found.*, (SELECT count(*) FROM top) AS matches
  FROM fence
       LEFT JOIN LATERAL (
           SELECT item.*, (best.score / 1e6)::float8 AS score, best.start, best.size,
                  sum(2048 + octet_length(item.name) + octet_length(item.content) + octet_length(item.tags::text))
                      OVER (ORDER BY best.score DESC, best.name) AS bytes
             FROM best
                  JOIN LATERAL (
                      SELECT visible.*
                        FROM visible
                       WHERE visible.tenant = %(tenant)s
                         AND (visible.agent, visible.kind, visible.name) = (fence.agent, %(kind)s, best.name)
                       ORDER BY visible.level DESC
                       LIMIT 1
                  ) AS item ON TRUE
       ) AS found ON found.bytes <= %(page_bytes)s
 ORDER BY found.score DESC, found.name;
