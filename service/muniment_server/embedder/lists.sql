-- How the embedder, as the role of one level, keeps the lists of that level's own embeddings, for all agents. There is
-- no session, so these queries are an exception to the session predicate, like those of queue.sql.

-- name: unfinished_lists
-- The agents and kinds of items whose lists are not finished: chunks are enough for lists, or for more of them; or a
-- list has no center, is retired or was made for another model; or embeddings are in no list.
WITH stored AS (
    SELECT stat.tenant, stat.agent, stat.kind, sum(stat.chunks) AS chunks
      FROM stat
     GROUP BY stat.tenant, stat.agent, stat.kind
    HAVING sum(stat.chunks) >= %(least)s
),
listed AS (
    SELECT list.tenant, list.agent, list.kind,
           count(*) FILTER (WHERE list.embedder = %(embedder)s AND NOT list.is_retired) AS lists,
           bool_or(list.signs IS NULL OR list.is_retired OR list.embedder <> %(embedder)s) AS is_unfinished
      FROM embedding_list AS list
     GROUP BY list.tenant, list.agent, list.kind
)
SELECT tenant, agent, kind
  FROM stored
       FULL JOIN listed USING (tenant, agent, kind)
 WHERE coalesce(listed.is_unfinished, FALSE)
    OR listed.lists > 0
   AND EXISTS (
           SELECT
             FROM meaning
            WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder)
                  = (listed.tenant, listed.agent, listed.kind, %(embedder)s)
              AND meaning.list IS NULL
       )
    OR stored.chunks >= %(growth)s::bigint * %(size)s::bigint * coalesce(listed.lists, 0)
 ORDER BY tenant, agent, kind;

-- name: count_embedded
SELECT count(*) AS embedded
  FROM meaning
 WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s);

-- name: lists
-- All lists of one agent and kind, and whether they contain anything.
SELECT list.number, list.version, list.signs::text AS signs, list.is_retired,
       EXISTS (
           SELECT
             FROM meaning
            WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder, meaning.list)
                  = (list.tenant, list.agent, list.kind, list.embedder, list.number)
       ) AS is_filled
  FROM embedding_list AS list
 WHERE (list.tenant, list.agent, list.kind, list.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
 ORDER BY list.number;

-- name: add_lists
-- Retire all lists, and add as many as are wanted, without centers. Does nothing if another embedder process has just
-- done so, or if an erasure has locked a list.
WITH known AS MATERIALIZED (
    SELECT count(*) AS count, coalesce(max(abs(list.number)), 0) AS last
      FROM embedding_list AS list
     WHERE (list.tenant, list.agent, list.kind, list.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
),
locked AS MATERIALIZED (
    SELECT list.number
      FROM embedding_list AS list
     WHERE (list.tenant, list.agent, list.kind, list.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
       FOR NO KEY UPDATE SKIP LOCKED
),
free AS MATERIALIZED (
    SELECT known.last / 4 AS last
      FROM known
     WHERE known.last = %(last)s
       AND known.count = (SELECT count(*) FROM locked)
),
retired AS (
    UPDATE embedding_list AS retired
       SET is_retired = TRUE
      FROM free
           CROSS JOIN locked
     WHERE (retired.tenant, retired.agent, retired.kind, retired.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
       AND retired.number = locked.number
)
INSERT INTO embedding_list AS added (tenant, agent, kind, embedder, number)
SELECT %(tenant)s, %(agent)s, %(kind)s, %(embedder)s, %(sign)s * (4 * (free.last + place) + %(level)s %% 4)
  FROM free
       CROSS JOIN generate_series(1, %(wanted)s) AS place
    ON CONFLICT DO NOTHING;

-- name: sample_signs
-- The signs of one in stride embeddings of one agent and kind, chosen by a hash of the name, so that a repetition reads
-- the same ones.
SELECT NULL::integer AS list, meaning.signs::text AS signs
  FROM meaning
 WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
   AND hashtextextended(meaning.name, meaning.piece) %% %(stride)s = 0
 ORDER BY meaning.name, meaning.piece
 LIMIT %(most)s;

-- name: signs_of_lists
-- The signs of some embeddings of each of several lists.
SELECT member.list, member.signs
  FROM unnest(%(numbers)s::integer[]) AS wanted (number)
       CROSS JOIN LATERAL (
           SELECT meaning.list, meaning.signs::text AS signs
             FROM meaning
            WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
              AND meaning.list = wanted.number
            LIMIT %(most)s
       ) AS member;

-- name: set_centers
-- Store centers, except in lists that an erasure or another embedder process has changed since their version was read,
-- or has locked. Waits for no lock.
WITH made AS MATERIALIZED (
    SELECT made.*
      FROM jsonb_to_recordset(%(made)s) AS made (number integer, version integer, signs bit(384))
),
free AS MATERIALIZED (
    SELECT list.number, list.version
      FROM embedding_list AS list
     WHERE (list.tenant, list.agent, list.kind, list.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
       AND list.number IN (SELECT made.number FROM made)
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE embedding_list AS centered
   SET signs   = made.signs,
       version = centered.version + 1
  FROM made
       JOIN free USING (number, version)
 WHERE (centered.tenant, centered.agent, centered.kind, centered.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
   AND centered.number = made.number;

-- name: find_outside
-- Whether any embeddings of one agent and kind are in no list, or in a retired one.
SELECT EXISTS (
           SELECT
             FROM meaning
            WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
              AND meaning.list IS NULL
       )
       OR EXISTS (
           SELECT
             FROM embedding_list AS list
                  JOIN meaning
                       ON (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder, meaning.list)
                          = (list.tenant, list.agent, list.kind, list.embedder, list.number)
            WHERE (list.tenant, list.agent, list.kind, list.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
              AND list.is_retired
       ) AS any_outside;

-- name: chunks_outside
-- A batch of the chunks of one agent and kind, after a given one. Those that are in no list, or in a retired one, come
-- with their signs.
SELECT meaning.name, meaning.change_id, meaning.piece AS number,
       CASE WHEN meaning.embedder = %(embedder)s
             AND (meaning.list IS NULL OR meaning.list = ANY(%(retired)s))
            THEN meaning.signs::text END AS signs
  FROM meaning
 WHERE (meaning.tenant, meaning.agent, meaning.kind) = (%(tenant)s, %(agent)s, %(kind)s)
   AND (meaning.name, meaning.change_id, meaning.piece) > (%(name)s, %(change_id)s, %(number)s)
 ORDER BY meaning.name, meaning.change_id, meaning.piece
 LIMIT %(most)s;

-- name: fill_lists
-- Put embeddings into lists, except those that are locked, or that another embedder process has put into a list
-- meanwhile.
WITH found AS MATERIALIZED (
    SELECT found.*
      FROM jsonb_to_recordset(%(found)s) AS found (name text, change_id uuid, number integer, list integer)
),
free AS MATERIALIZED (
    SELECT meaning.name, meaning.change_id, meaning.piece
      FROM meaning
     WHERE (meaning.tenant, meaning.agent, meaning.kind) = (%(tenant)s, %(agent)s, %(kind)s)
       AND (meaning.name, meaning.change_id, meaning.piece)
           IN (SELECT found.name, found.change_id, found.number FROM found)
       AND meaning.embedder = %(embedder)s
       AND (meaning.list IS NULL OR meaning.list = ANY(%(retired)s))
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE meaning AS moved
   SET list = found.list
  FROM found
       JOIN free
            ON (free.name, free.change_id, free.piece) = (found.name, found.change_id, found.number)
 WHERE (moved.tenant, moved.agent, moved.kind) = (%(tenant)s, %(agent)s, %(kind)s)
   AND (moved.name, moved.change_id, moved.piece) = (found.name, found.change_id, found.number);

-- name: retire_empty_lists
-- Retire lists without a center and without an embedding. Waits for no lock.
WITH free AS MATERIALIZED (
    SELECT list.number
      FROM embedding_list AS list
     WHERE (list.tenant, list.agent, list.kind, list.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
       AND list.number = ANY(%(numbers)s)
       AND list.signs IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE embedding_list AS retired
   SET is_retired = TRUE
  FROM free
 WHERE (retired.tenant, retired.agent, retired.kind, retired.embedder) = (%(tenant)s, %(agent)s, %(kind)s, %(embedder)s)
   AND retired.number = free.number;

-- name: drop_lists
-- Drop the empty lists that are retired or were made for another model. Waits for no lock.
WITH free AS MATERIALIZED (
    SELECT list.embedder, list.number
      FROM embedding_list AS list
     WHERE (list.tenant, list.agent, list.kind) = (%(tenant)s, %(agent)s, %(kind)s)
       AND (list.is_retired OR list.embedder <> %(embedder)s)
       FOR NO KEY UPDATE SKIP LOCKED
)
DELETE FROM embedding_list AS dropped
 USING free
 WHERE (dropped.tenant, dropped.agent, dropped.kind) = (%(tenant)s, %(agent)s, %(kind)s)
   AND (dropped.embedder, dropped.number) = (free.embedder, free.number)
   AND NOT EXISTS (
           SELECT
             FROM meaning
            WHERE (meaning.tenant, meaning.agent, meaning.kind, meaning.embedder, meaning.list)
                  = (dropped.tenant, dropped.agent, dropped.kind, dropped.embedder, dropped.number)
       );
