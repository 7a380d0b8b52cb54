-- Lists of passages, as the role of a level.

-- name: list_passages
-- One page, newest first, each passage at its highest visible level; filters come after the shadow.
-- Nulls: nothing more. bytes: as in list_items.
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.label,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time, found.newest_label, found.newest_time,
       found.bytes
  FROM session
       LEFT JOIN LATERAL (
           SELECT sized.*, newest.label AS newest_label, newest.update_time AS newest_time
             FROM (
                      SELECT page.*, sum(page.own_bytes) OVER (ORDER BY page.event_time DESC, page.create_time DESC, page.name DESC
                                                               ROWS UNBOUNDED PRECEDING) AS bytes
                        FROM (
                                 SELECT seen.*,
                                        512 + octet_length(seen.content) + octet_length(seen.tags::text)
                                        + coalesce(octet_length(seen.thread), 0) + coalesce(octet_length(seen.author), 0) AS own_bytes
                                   FROM visible AS seen
                                  WHERE seen.kind = 4
                                    AND (seen.event_time, seen.create_time, seen.name)
                                        < (%(before_event)s::timestamptz, %(before_create)s::timestamptz, %(before_name)s)
                                    AND seen.label = ( -- a look-up per row: NOT EXISTS would read all items of the agent
                                            SELECT max(above.label)
                                              FROM visible AS above
                                             WHERE (above.kind, above.name) = (4, seen.name)
                                        )
                                    AND (%(thread)s::text IS NULL OR seen.thread = %(thread)s)
                                    AND (%(start_time)s::timestamptz IS NULL OR seen.event_time >= %(start_time)s)
                                    AND (%(end_time)s::timestamptz IS NULL OR seen.event_time < %(end_time)s)
                                    AND CASE WHEN %(any_tag)s THEN seen.tags && %(tags)s::text[] ELSE seen.tags @> %(tags)s::text[] END
                                  ORDER BY seen.event_time DESC, seen.create_time DESC, seen.name DESC
                                  LIMIT %(limit)s
                             ) AS page
                  ) AS sized
                  CROSS JOIN LATERAL (
                      SELECT visible.label, visible.update_time
                        FROM visible
                       WHERE (visible.kind, visible.name) = (4, sized.name)
                       ORDER BY visible.update_time DESC, visible.label DESC
                       LIMIT 1
                  ) AS newest
            WHERE sized.bytes - sized.own_bytes <= %(page_bytes)s
       ) AS found ON TRUE
 ORDER BY found.event_time DESC, found.create_time DESC, found.name DESC;
