-- Archival passages, as the role of one level: what differs from other items. See items.sql.

-- name: store_passages
-- Store the passages that are not there yet, in their order, up to the first that is refused: its id is taken by another
-- content, or it expires in the past.
-- Outcome OK, EXISTS, ALREADY_EXISTS, PAST (its expiry), or null: not judged, because of one before or of another writer.
WITH fence AS MATERIALIZED (
    SELECT session.*, vault.clock() AS time
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       FOR NO KEY UPDATE
),
given AS MATERIALIZED (
    SELECT given.*
      FROM jsonb_to_recordset(%(passages)s) AS given (position integer, name text, item_id uuid, change_id uuid, content text,
                                                      tags text[], thread text, author text, event_time timestamptz,
                                                      expire_time timestamptz)
),
known AS MATERIALIZED ( -- the highest visible passage of each id
    SELECT DISTINCT ON (given.position) given.position, given.content = visible.content AS same, visible.*
      FROM given
           JOIN visible
                ON visible.tenant = %(tenant)s
               AND (visible.agent, visible.kind, visible.name) = ((SELECT fence.agent FROM fence), 4, given.name)
     ORDER BY given.position, visible.level DESC
),
refused AS MATERIALIZED (
    SELECT min(given.position) AS position
      FROM fence
           CROSS JOIN given
           LEFT JOIN known ON known.position = given.position
     WHERE NOT known.same
        OR known.position IS NULL AND given.expire_time <= fence.time
),
expiring AS MATERIALIZED ( -- locked by name, or two batches of the same ids deadlock
    SELECT own.item_id
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND own.kind = 4
       AND own.name IN (SELECT given.name FROM given)
       AND own.delete_time IS NULL
       AND own.expire_time <= vault.clock()
     ORDER BY own.name
       FOR NO KEY UPDATE
),
expired AS ( -- as good as deleted, and in the way of the new one
    UPDATE item AS own
       SET delete_time = fence.time
      FROM fence
           CROSS JOIN expiring
     WHERE own.tenant = %(tenant)s
       AND (own.agent, own.item_id) = (fence.agent, expiring.item_id)
       AND own.delete_time IS NULL
 RETURNING own.item_id
),
stored AS ( -- inserted by name, for the same reason
    INSERT INTO item AS own (tenant, agent, kind, name, item_id, change_id, content, tags, thread, author, event_time,
                             create_time, update_time, expire_time)
    SELECT %(tenant)s, fence.agent, 4, given.name, given.item_id, given.change_id, given.content, given.tags, given.thread,
           given.author, coalesce(given.event_time, fence.time + given.position * interval '1 microsecond'),
           fence.time + given.position * interval '1 microsecond', fence.time, given.expire_time
      FROM fence
           CROSS JOIN given
     WHERE (SELECT count(*) FROM expired) >= 0
       AND given.position NOT IN (SELECT known.position FROM known)
       AND given.position < coalesce((SELECT refused.position FROM refused), %(count)s)
     ORDER BY given.name
        ON CONFLICT (tenant, agent, kind, name, level) WHERE delete_time IS NULL DO NOTHING
 RETURNING own.name, own.level, own.item_id, own.revision, own.change_id, own.tags, own.thread, own.author, own.event_time,
           own.create_time, own.expire_time
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, stored.change_id, fence.agent, fence.session_id, %(method)s, 4, 'OK', stored.item_id, stored.revision
      FROM fence
           CROSS JOIN stored
)
SELECT CASE WHEN stored.item_id IS NOT NULL THEN 'OK' WHEN known.same THEN 'EXISTS'
            WHEN NOT known.same THEN 'ALREADY_EXISTS'
            WHEN given.expire_time <= fence.time THEN 'PAST' END AS outcome,
       given.name, given.content,
       coalesce(stored.level, known.level) AS level, coalesce(stored.tags, known.tags) AS tags,
       coalesce(stored.thread, known.thread) AS thread, coalesce(stored.author, known.author) AS author,
       coalesce(stored.event_time, known.event_time) AS event_time,
       coalesce(stored.create_time, known.create_time) AS create_time,
       coalesce(stored.expire_time, known.expire_time) AS expire_time
  FROM fence
       CROSS JOIN given
       LEFT JOIN known ON known.position = given.position
       LEFT JOIN stored ON stored.name = given.name
 ORDER BY given.position;

-- name: list_passages
-- One page from the newest to the oldest, each passage at its highest visible level, filters looked at after the shadow.
-- Nulls: nothing more. bytes: as in list_items.
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.level,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time, found.bytes
  FROM session
       LEFT JOIN LATERAL (
           SELECT sized.*
             FROM (
                      SELECT page.*, sum(page.own_bytes) OVER (ORDER BY page.event_time DESC, page.create_time DESC, page.name DESC
                                                               ROWS UNBOUNDED PRECEDING) AS bytes
                        FROM (
                                 SELECT seen.*,
                                        512 + octet_length(seen.content) + octet_length(seen.tags::text)
                                        + coalesce(octet_length(seen.thread), 0) + coalesce(octet_length(seen.author), 0) AS own_bytes
                                   FROM visible AS seen
                                  WHERE seen.tenant = %(tenant)s
                                    AND (seen.agent, seen.kind) = (session.agent, 4)
                                    AND (seen.event_time, seen.create_time, seen.name)
                                        < (%(before_event)s::timestamptz, %(before_create)s::timestamptz, %(before_name)s)
                                    AND seen.level = ( -- a probe for each row: NOT EXISTS reads all of the agent's
                                            SELECT max(above.level)
                                              FROM visible AS above
                                             WHERE above.tenant = %(tenant)s
                                               AND (above.agent, above.kind, above.name) = (session.agent, 4, seen.name)
                                        )
                                    AND (%(thread)s::text IS NULL OR seen.thread = %(thread)s)
                                    AND (%(start_time)s::timestamptz IS NULL OR seen.event_time >= %(start_time)s)
                                    AND (%(end_time)s::timestamptz IS NULL OR seen.event_time < %(end_time)s)
                                    AND CASE WHEN %(any_tag)s THEN seen.tags && %(tags)s::text[] ELSE seen.tags @> %(tags)s::text[] END
                                  ORDER BY seen.event_time DESC, seen.create_time DESC, seen.name DESC
                                  LIMIT %(limit)s
                             ) AS page
                  ) AS sized
            WHERE sized.bytes - sized.own_bytes <= %(page_bytes)s
       ) AS found ON TRUE
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s
 ORDER BY found.event_time DESC, found.create_time DESC, found.name DESC;
