-- Search by words, as the role of a level. Every chunk contains the term `@agent:kind`; other terms are looked up together with it.

-- name: search_terms
-- The terms of a query and in how many visible chunks each occurs, as rows of different kinds (what):
-- `corpus` comes first: the number of chunks and their lengths; `stem` and `gram` are terms; `stop` is a stem that is a stop word
-- in a language of the agent's items; `stop_word` is one of %(words)s that is a stop word in such a language.
-- Terms are counted in a sample first, and exactly if the sample shows that they are rare.
WITH posting AS MATERIALIZED ( -- the term that every chunk of the agent's items of the kind contains
    SELECT '@' || session.agent || ':' || %(kind)s::smallint AS scope
      FROM session
),
corpus AS MATERIALIZED (
    SELECT stat.language, sum(stat.chunks)::bigint AS chunks, sum(stat.stems)::bigint AS stems, sum(stat.grams)::bigint AS grams
      FROM visible_stat AS stat
     WHERE stat.kind = %(kind)s
     GROUP BY stat.language
    HAVING sum(stat.chunks) > 0
),
likely AS MATERIALIZED ( -- the likely language of the query, and those of more than a few chunks; each costs a parse of the query
    SELECT corpus.language
      FROM corpus
     WHERE corpus.language = %(language)s
        OR corpus.chunks * 20 >= (SELECT max(other.chunks) FROM corpus AS other)
     ORDER BY corpus.language = %(language)s DESC, corpus.chunks DESC, corpus.language
     LIMIT 4
),
parsed AS MATERIALIZED (
    SELECT likely.language, word.lexeme, word.positions[1] AS place
      FROM likely
           CROSS JOIN LATERAL unnest(to_tsvector(('vault.' || likely.language)::regconfig, %(query)s)) AS word
),
content_word AS MATERIALIZED (
    SELECT likely.language, word.lexeme
      FROM likely
           CROSS JOIN LATERAL unnest(to_tsvector(('pg_catalog.' || likely.language)::regconfig, %(query)s)) AS word
),
stem AS MATERIALIZED (
    SELECT CASE WHEN bool_or(content_word.lexeme IS NULL) THEN 'stop' ELSE 'stem' END AS what, parsed.lexeme AS text,
           min(parsed.place) AS place
      FROM parsed
           LEFT JOIN content_word USING (language, lexeme)
     WHERE octet_length(parsed.lexeme) < 2047 -- a tsvector may hold longer lexemes than a tsquery
     GROUP BY parsed.lexeme
     ORDER BY min(parsed.place), parsed.lexeme
     LIMIT %(most_stems)s
),
sample AS MATERIALIZED ( -- by a hash of the text: the sample depends only on the visible rows, not on the plan
    SELECT chunk.stems, chunk.grams, chunk.sample, chunk.name, chunk.label, chunk.piece
      FROM visible_chunk AS chunk
     WHERE chunk.kind = %(kind)s
       AND chunk.start >= 0 -- always true, and the condition of the index
     ORDER BY chunk.sample, chunk.name, chunk.label, chunk.piece
     LIMIT %(max_sampled)s
),
size AS MATERIALIZED (
    SELECT (SELECT count(*) FROM sample) AS sampled, coalesce(sum(corpus.chunks), 0)::bigint AS chunks,
           coalesce(sum(corpus.stems), 0)::bigint AS stems, coalesce(sum(corpus.grams), 0)::bigint AS grams
      FROM corpus
),
gram_sample AS MATERIALIZED (
    SELECT sample.grams
      FROM sample
     ORDER BY sample.sample, sample.name, sample.label, sample.piece
     LIMIT (SELECT CASE WHEN sampled < %(max_sampled)s THEN sampled ELSE greatest(%(few_sampled)s, chunks / 40) END FROM size)
),
requested AS MATERIALIZED ( -- quoted, so that nothing in a stem is syntax
    SELECT stem.what, stem.text, stem.place, ('''' || replace(replace(stem.text, '\', '\\'), '''', '''''') || '''')::tsquery AS word
      FROM stem
     UNION ALL
    SELECT 'gram', gram.text, 0, gram.word::tsquery
      FROM unnest(%(grams)s::text[], %(quoted_grams)s::text[]) AS gram (text, word)
),
counted AS MATERIALIZED (
    SELECT requested.what, requested.text, requested.place, ('''' || posting.scope || '''')::tsquery && requested.word AS words, size.chunks,
           size.sampled < %(max_sampled)s AS is_all,
           CASE WHEN requested.what = 'gram' THEN (SELECT count(*) FROM gram_sample) ELSE size.sampled END AS sampled,
           CASE WHEN requested.what = 'gram' THEN (SELECT count(*) FROM gram_sample WHERE grams @@ requested.word)
                ELSE (SELECT count(*) FROM sample WHERE stems @@ requested.word) END AS found
      FROM posting
           CROSS JOIN size
           CROSS JOIN requested
)
SELECT 'corpus' AS what, '' AS text, size.chunks, size.stems, size.grams, 0 AS place
  FROM session
       CROSS JOIN size
 UNION ALL
SELECT counted.what, counted.text,
       CASE WHEN counted.is_all THEN counted.found
            WHEN counted.found * counted.chunks
                 > counted.sampled * CASE WHEN counted.what = 'gram' THEN %(max_grams_counted)s::bigint ELSE %(max_stems_counted)s END
            THEN counted.found * counted.chunks / counted.sampled
            WHEN counted.what = 'gram'
            THEN (
                SELECT count(*)
                  FROM visible_chunk_by_term AS chunk
                 WHERE chunk.grams @@ counted.words
            )
            ELSE (
                SELECT count(*)
                  FROM visible_chunk_by_term AS chunk
                 WHERE chunk.stems @@ counted.words
            ) END, 0, 0, counted.place
  FROM counted
 UNION ALL
SELECT 'stop_word', word.text, 0, 0, 0, 0
  FROM unnest(%(words)s::text[]) AS word (text)
 WHERE EXISTS (
           SELECT
             FROM likely
            WHERE likely.language <> 'simple'
              AND ts_lexize(('pg_catalog.' || likely.language || '_stem')::regdictionary, word.text) = '{}'
       );

-- name: search_items
-- The best matches, each name at its highest visible level and by its best chunk; filters come after the shadow. Nulls: no match.
-- Scores are integers, in millionths, so that no sum depends on the order of rows; ties are broken by name.
-- In a thread, a hit lends 1/5 of its score to each of the two visible turns before it and the two after; one that asks lends 7/10
-- to the next turn, which may answer. Only the part for words that the neighbor lacks is lent, so that a repeated word counts once.
-- An item that search_embeddings found lends all of its similarity to the turn before it, whose text its embedding has too, and 1/5
-- to the next. The turn two places away gets 2/5 of both across an interruption, after which an author goes on: if the query names
-- only the author between, or only the other two. bytes: as in list_items.
-- Then a short passage of a thread, a turn, is weighed (turn_factor, in thousandths): less if it says little or asks, more if it is by
-- an author whom the query names (authors). At last the best score in its thread counts for a fifth as much as its own.
-- names, threads, places, turn_factors, by_named_author and semantic_scores: the items that search_embeddings found. share: the lexical score of the
-- best match by words, before it is weighed, if its score is at least least_best; the others follow in proportion. semantic_share:
-- the same of the best match by embeddings. stems: a bit for each of the query's stems that the best chunk contains, null if the item
-- was not found by words. matches: how many items were found by words, up to a bound.
WITH posting AS MATERIALIZED (
    SELECT session.agent, ('''@' || session.agent || ':' || %(kind)s::smallint || '''')::tsquery AS scope
      FROM session
),
seen AS NOT MATERIALIZED (
    SELECT chunk.*,
           chunk.tier = %(tier)s
           -- coalesce: an index of names would be read for it, though the range is nearly always that of all names
           AND coalesce(chunk.name >= %(name_prefix)s AND chunk.name < %(after_prefix)s, FALSE)
           AND (%(thread)s::text IS NULL OR chunk.thread = %(thread)s)
           AND (%(start_time)s::timestamptz IS NULL OR chunk.event_time >= %(start_time)s)
           AND (%(end_time)s::timestamptz IS NULL OR chunk.event_time < %(end_time)s)
           AND CASE WHEN %(any_tag)s THEN chunk.tags && %(tags)s::text[] ELSE chunk.tags @> %(tags)s::text[] END AS passes,
           CASE WHEN chunk.thread IS NOT NULL AND chunk.is_whole
                THEN 20 * CASE WHEN turn.by_named_author THEN 6 ELSE 5 END * CASE WHEN turn.asks THEN 9 ELSE 10 END
                     * chunk.size / (chunk.size + 30)
                ELSE 1000 END AS turn_factor,
           turn.by_named_author, turn.asks
      FROM visible_chunk_by_term AS chunk
           CROSS JOIN LATERAL (
               SELECT coalesce(chunk.stems @@ %(authors)s::tsquery, FALSE) AS by_named_author, chunk.stems @@ '''@?'''::tsquery AS asks
           ) AS turn
),
stem AS MATERIALIZED (
    SELECT stem.text::tsquery AS word, (stem.text || ':C')::tsquery AS twice, (stem.text || ':B')::tsquery AS thrice,
           (stem.text || ':A')::tsquery AS often, stem.weight, 1::bigint << (stem.number - 1)::integer AS bit
      FROM unnest(%(stems)s::text[], %(stem_weights)s::float8[]) WITH ORDINALITY AS stem (text, weight, number)
),
gram AS MATERIALIZED (
    SELECT gram.text::tsquery AS word, gram.weight
      FROM unnest(%(grams)s::text[], %(gram_weights)s::float8[]) AS gram (text, weight)
),
scored AS MATERIALIZED ( -- the query's terms are looked up in the chunk, which has many more
    SELECT seen.name, seen.label, seen.piece, seen.start, seen.size, seen.is_whole, seen.thread, seen.place, seen.turn_factor,
           seen.by_named_author, seen.asks, by_stem.found, by_stem.score + (
               SELECT coalesce(sum((gram.weight / (1 + %(damping)s + seen.gram_count * %(gram_slope)s))::integer), 0)
                 FROM gram
                WHERE seen.grams @@ gram.word
           ) AS score
      FROM seen
           CROSS JOIN LATERAL (
               SELECT coalesce(sum((stem.weight * many.times / (many.times + %(damping)s + seen.stem_count * %(stem_slope)s))::integer), 0) AS score,
                      coalesce(sum(stem.bit), 0)::bigint AS found
                 FROM stem
                      CROSS JOIN LATERAL (
                          SELECT CASE WHEN seen.stems @@ stem.twice THEN 2 WHEN seen.stems @@ stem.thrice THEN 3
                                      WHEN seen.stems @@ stem.often THEN 5 ELSE 1 END AS times -- 5: four or more, which BM25 hardly distinguishes
                      ) AS many
                WHERE seen.stems @@ stem.word
           ) AS by_stem
     WHERE seen.passes
       AND (seen.stems @@ (SELECT posting.scope && %(wanted_stems)s::tsquery FROM posting)
            OR seen.grams @@ (SELECT posting.scope && %(wanted_grams)s::tsquery FROM posting))
),
hit AS MATERIALIZED (
    SELECT DISTINCT ON (scored.name, scored.label) scored.*
      FROM scored
     ORDER BY scored.name, scored.label, scored.score DESC, scored.piece
),
top AS MATERIALIZED ( -- shadowing is checked from the best match downward, until there are enough
    SELECT ranked.*
      FROM (SELECT hit.* FROM hit ORDER BY hit.score DESC, hit.name, hit.label LIMIT ALL) AS ranked
     WHERE 0 = (
               SELECT count(*)
                 FROM visible AS above
                WHERE (above.kind, above.name) = (%(kind)s, ranked.name)
                  AND above.label > ranked.label
           )
     ORDER BY ranked.score DESC, ranked.name, ranked.label
     LIMIT greatest(%(limit)s::bigint, %(max_lenders)s)
),
thread_chunk AS NOT MATERIALIZED ( -- the first chunks of passages in threads, after the shadow
    SELECT seen.*
      FROM seen
     WHERE seen.piece = 0
       AND 0 = (
               SELECT count(*)
                 FROM visible AS above
                WHERE (above.kind, above.name) = (%(kind)s, seen.name)
                  AND above.label > seen.label
           )
       AND seen.agent = (SELECT posting.agent FROM posting) -- redundant, but without it each lookup searches the index chunk_thread under every agent
),
semantic AS MATERIALIZED (
    SELECT semantic.*
      FROM unnest(%(names)s::text[], %(threads)s::text[], %(places)s::text[], %(turn_factors)s::integer[],
                  %(by_named_author)s::boolean[], %(semantic_scores)s::integer[])
           AS semantic (name, thread, place, turn_factor, by_named_author, score)
),
thread_hit AS ( -- the best short passages of a thread, and those that search_embeddings found
    SELECT each.thread, each.place, max(each.found) AS found, max(each.score) AS score, bool_or(each.asks) AS asks,
           bool_or(each.by_named_author) AS by_named_author, max(each.similarity) AS similarity
      FROM (
               (
                   SELECT top.thread, top.place, top.found, top.score, top.asks, top.by_named_author, 0 AS similarity
                     FROM top
                    WHERE top.thread IS NOT NULL
                      AND top.is_whole
                    ORDER BY top.score DESC, top.name
                    LIMIT %(max_lenders)s
               )
                UNION ALL
               SELECT semantic.thread, semantic.place, 0, 0, FALSE, semantic.by_named_author, semantic.score
                 FROM semantic
                WHERE semantic.thread IS NOT NULL
           ) AS each
     GROUP BY each.thread, each.place
),
thread_score AS MATERIALIZED (
    SELECT neighbor.name, neighbor.label, neighbor.thread, neighbor.turn_factor,
           sum(thread_hit.score * lent.score_tenths * missing.share / 10000) AS score,
           sum(thread_hit.similarity * lent.similarity_tenths / 10) AS similarity
      FROM thread_hit
           CROSS JOIN LATERAL (
               (
                   SELECT thread_chunk.name, thread_chunk.label, thread_chunk.thread, thread_chunk.turn_factor, thread_chunk.stems,
                          thread_chunk.passes AND thread_chunk.is_whole AS is_eligible,
                          row_number() OVER (ORDER BY thread_chunk.place) AS distance, thread_chunk.by_named_author,
                          lag(thread_chunk.by_named_author) OVER (ORDER BY thread_chunk.place) AS between_by_named_author
                     FROM thread_chunk
                    WHERE thread_chunk.thread = thread_hit.thread
                      AND thread_chunk.place > thread_hit.place
                    ORDER BY thread_chunk.place
                    LIMIT 2
               )
                UNION ALL
               (
                   SELECT thread_chunk.name, thread_chunk.label, thread_chunk.thread, thread_chunk.turn_factor, thread_chunk.stems,
                          thread_chunk.passes AND thread_chunk.is_whole,
                          -row_number() OVER (ORDER BY thread_chunk.place DESC), thread_chunk.by_named_author,
                          lag(thread_chunk.by_named_author) OVER (ORDER BY thread_chunk.place DESC)
                     FROM thread_chunk
                    WHERE thread_chunk.thread = thread_hit.thread
                      AND thread_chunk.place < thread_hit.place
                    ORDER BY thread_chunk.place DESC
                    LIMIT 2
               )
           ) AS neighbor
           CROSS JOIN LATERAL ( -- the query names only the author between, or only the other two; null for the next turn and the previous one
               SELECT neighbor.by_named_author = thread_hit.by_named_author
                      AND neighbor.between_by_named_author <> thread_hit.by_named_author AS is_interrupted
           ) AS pair
           CROSS JOIN LATERAL (
               SELECT CASE WHEN pair.is_interrupted THEN 4 WHEN thread_hit.asks AND neighbor.distance = 1 THEN 7 ELSE 2 END AS score_tenths,
                      CASE WHEN pair.is_interrupted THEN 4 WHEN neighbor.distance = -1 THEN 10 WHEN neighbor.distance = 1 THEN 2
                           ELSE 0 END AS similarity_tenths
           ) AS lent
           CROSS JOIN LATERAL ( -- the weight of the hit's stems that the neighbor lacks, in thousandths; of a hit without stems, all; of stems that weigh nothing, none
               SELECT coalesce(1000 * sum(stem.weight::integer) FILTER (WHERE NOT neighbor.stems @@ stem.word)
                               / nullif(sum(stem.weight::integer), 0), CASE WHEN count(*) = 0 THEN 1000 ELSE 0 END) AS share
                 FROM stem
                WHERE thread_hit.found & stem.bit <> 0
           ) AS missing
     WHERE neighbor.is_eligible
     GROUP BY neighbor.name, neighbor.label, neighbor.thread, neighbor.turn_factor
    HAVING sum(thread_hit.score * lent.score_tenths * missing.share) + sum(thread_hit.similarity * lent.similarity_tenths) > 0
),
lexical AS (
    SELECT name, hit.start, hit.size, hit.found, coalesce(hit.score, 0) + coalesce(thread_score.score, 0) AS score, thread_score.similarity,
           coalesce(thread_score.thread, CASE WHEN hit.is_whole THEN hit.thread END) AS thread,
           coalesce(thread_score.turn_factor, hit.turn_factor) AS turn_factor
      FROM (
               SELECT hit.*
                 FROM hit
                WHERE (hit.name, hit.label) IN (SELECT top.name, top.label FROM top
                                                 UNION ALL
                                                SELECT thread_score.name, thread_score.label FROM thread_score)
           ) AS hit
           FULL JOIN thread_score USING (name, label)
),
matched AS (
    SELECT name, lexical.start, lexical.size, lexical.found, coalesce(lexical.thread, semantic.thread) AS thread,
           coalesce(lexical.score, 0) AS score, coalesce(lexical.similarity, 0) + coalesce(semantic.score, 0) AS similarity,
           coalesce(lexical.turn_factor, semantic.turn_factor) AS turn_factor
      FROM lexical
           FULL JOIN semantic USING (name)
),
weighed AS (
    SELECT matched.*,
           round(matched.turn_factor
                 * (coalesce(%(share)s * matched.score / nullif(greatest(max(matched.score) OVER (), %(least_best)s::float8), 0), 0)
                    + coalesce(%(semantic_share)s * matched.similarity / nullif(max(matched.similarity) OVER (), 0), 0)) / 1000) AS total
      FROM matched
),
best AS (
    SELECT weighed.name, weighed.start, weighed.size, weighed.found,
           CASE WHEN weighed.thread IS NULL THEN weighed.total
                ELSE round((5 * weighed.total + max(weighed.total) OVER (PARTITION BY weighed.thread)) / 6) END AS score
      FROM weighed
     ORDER BY score DESC, weighed.name
     LIMIT %(limit)s
)
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.label,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time, found.newest_label, found.newest_time,
       found.change_id, found.score, found.start, found.size, found.found AS stems, nullif((SELECT count(*) FROM top), 0) AS matches
  FROM session
       LEFT JOIN LATERAL (
           SELECT item.*, (best.score / 1e6)::float8 AS score, best.start, best.size, best.found,
                  sum(2048 + octet_length(item.name) + octet_length(item.content) + octet_length(item.tags::text))
                      OVER (ORDER BY best.score DESC, best.name) AS bytes
             FROM best
                  JOIN LATERAL (
                      SELECT visible.*, first_value(visible.label) OVER (ORDER BY visible.update_time DESC, visible.label DESC) AS newest_label,
                             first_value(visible.update_time) OVER (ORDER BY visible.update_time DESC, visible.label DESC) AS newest_time
                        FROM visible
                       WHERE (visible.kind, visible.name) = (%(kind)s, best.name)
                       ORDER BY visible.label DESC
                       LIMIT 1
                  ) AS item ON TRUE
       ) AS found ON found.bytes <= %(page_bytes)s
 ORDER BY found.score DESC, found.name;
