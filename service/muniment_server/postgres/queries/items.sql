-- Items, as the role of one level. The same text serves every level: the search path of the role begins with its schema.
-- Those that only one kind needs are in passages.sql, notes.sql and blocks.sql.
-- Every statement joins the session through the level's window (the fence). No row: the session is stale.

-- name: save_item
-- Save one memory, note or block at the session's own level. Outcome OK or ETAG_STALE.
-- Nothing has changed when the change_id returned is not the one given.
WITH fence AS MATERIALIZED (
    SELECT session.*, vault.clock() AS time
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       FOR NO KEY UPDATE
),
below AS MATERIALIZED ( -- as the snapshot shows it: a lower row may not be locked
    SELECT visible.item_id, visible.revision, visible.create_time
      FROM visible
     WHERE visible.tenant = %(tenant)s
       AND visible.agent = (SELECT fence.agent FROM fence)
       AND (visible.kind, visible.name) = (%(kind)s, %(name)s)
       AND visible.level < (SELECT fence.taint FROM fence)
     ORDER BY visible.level DESC
     LIMIT 1
),
live AS MATERIALIZED ( -- locked first when an etag is given, so that no INSERT takes its place
    SELECT own.item_id
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND (own.kind, own.name) = (%(kind)s, %(name)s)
       AND own.delete_time IS NULL
       AND (own.expire_time IS NULL OR own.expire_time > vault.clock())
       AND %(etag_item)s::uuid IS NOT NULL
       FOR NO KEY UPDATE
),
put AS (
    INSERT INTO item AS own (tenant, agent, kind, name, item_id, change_id, tier, content, tags,
                             create_time, update_time, expire_time)
    SELECT %(tenant)s, fence.agent, %(kind)s, %(name)s, %(item_id)s::uuid, %(change_id)s::uuid, %(tier)s, %(content)s, %(tags)s::text[],
           CASE WHEN %(kind)s IN (2, 3) AND below.item_id IS NOT NULL THEN below.create_time
                ELSE fence.time + %(position)s * interval '1 microsecond' END,
           fence.time + %(position)s * interval '1 microsecond', %(expire_time)s::timestamptz
      FROM fence
           LEFT JOIN below ON TRUE
     WHERE %(etag_item)s IS NULL
        OR (below.item_id, below.revision) = (%(etag_item)s, %(etag_revision)s)
        OR EXISTS (SELECT FROM live)
        ON CONFLICT (tenant, agent, kind, name, level) WHERE delete_time IS NULL DO UPDATE
       SET item_id     = CASE WHEN own.expire_time <= excluded.update_time THEN excluded.item_id ELSE own.item_id END,
           create_time = CASE WHEN own.expire_time <= excluded.update_time THEN excluded.create_time ELSE own.create_time END,
           revision    = CASE WHEN own.expire_time <= excluded.update_time THEN 1
                              WHEN (own.content, own.tags, own.expire_time)
                                   IS NOT DISTINCT FROM (excluded.content, excluded.tags, excluded.expire_time) THEN own.revision
                              ELSE own.revision + 1 END,
           change_id   = CASE WHEN (own.content, own.tags, own.expire_time)
                                   IS NOT DISTINCT FROM (excluded.content, excluded.tags, excluded.expire_time) THEN own.change_id
                              ELSE excluded.change_id END,
           update_time = CASE WHEN (own.content, own.tags, own.expire_time)
                                   IS NOT DISTINCT FROM (excluded.content, excluded.tags, excluded.expire_time) THEN own.update_time
                              ELSE excluded.update_time END,
           expire_time = excluded.expire_time,
           content     = excluded.content,
           tags        = excluded.tags
     WHERE %(etag_item)s IS NULL
        OR (own.item_id, own.revision) = (%(etag_item)s, %(etag_revision)s)
        OR own.expire_time <= excluded.update_time
 RETURNING own.item_id, own.revision, own.change_id, own.content, own.tags, own.create_time, own.update_time, own.expire_time
),
kept AS ( -- the ledger row is taken from what was really stored
    INSERT INTO revision AS kept (tenant, agent, item_id, revision, change_id, kind, name, content, tags, update_time, expire_time)
    SELECT %(tenant)s, fence.agent, put.item_id, put.revision, put.change_id, %(kind)s, %(name)s, put.content, put.tags,
           put.update_time, put.expire_time
      FROM fence
           CROSS JOIN put
     WHERE put.change_id = %(change_id)s
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, %(change_id)s, fence.agent, fence.session_id, %(method)s, %(kind)s,
           CASE WHEN put.item_id IS NULL THEN 'ETAG_STALE' ELSE 'OK' END, put.item_id, put.revision
      FROM fence
           LEFT JOIN put ON TRUE
     WHERE put.item_id IS NULL
        OR put.change_id = %(change_id)s
)
SELECT CASE WHEN put.item_id IS NULL THEN 'ETAG_STALE' ELSE 'OK' END AS outcome,
       fence.taint AS level, put.item_id, put.revision, put.create_time, put.update_time, put.expire_time
  FROM fence
       LEFT JOIN put ON TRUE;

-- name: delete_item
-- Delete the own-level version of one name. Outcome OK, ETAG_STALE, WRITE_LEVEL_MISMATCH or NOT_FOUND.
-- revealed: the level at which the name is seen from now on.
WITH fence AS MATERIALIZED (
    SELECT session.*, vault.clock() AS time
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       FOR NO KEY UPDATE
),
below AS MATERIALIZED (
    SELECT max(visible.level) AS level
      FROM visible
     WHERE visible.tenant = %(tenant)s
       AND visible.agent = (SELECT fence.agent FROM fence)
       AND (visible.kind, visible.name) = (%(kind)s, %(name)s)
       AND visible.level < (SELECT fence.taint FROM fence)
),
live AS MATERIALIZED (
    SELECT own.item_id, own.revision
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND (own.kind, own.name) = (%(kind)s, %(name)s)
       AND own.delete_time IS NULL
       AND (own.expire_time IS NULL OR own.expire_time > vault.clock())
       FOR NO KEY UPDATE
),
deleted AS ( -- by name: the snapshot may still show the item that expired before this one
    UPDATE item AS own
       SET delete_time = fence.time,
           change_id   = %(change_id)s::uuid
      FROM fence
           CROSS JOIN live
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT fence.agent FROM fence)
       AND (own.kind, own.name) = (%(kind)s, %(name)s)
       AND own.delete_time IS NULL
       AND (%(etag_item)s::uuid IS NULL OR (live.item_id, live.revision) = (%(etag_item)s, %(etag_revision)s))
 RETURNING own.item_id, own.revision
),
result AS (
    SELECT CASE WHEN deleted.item_id IS NOT NULL THEN 'OK'
                WHEN live.item_id IS NOT NULL THEN 'ETAG_STALE'
                WHEN below.level IS NOT NULL THEN 'WRITE_LEVEL_MISMATCH'
                ELSE 'NOT_FOUND' END AS outcome,
           CASE WHEN deleted.item_id IS NOT NULL THEN below.level END AS revealed,
           deleted.item_id, deleted.revision
      FROM below
           LEFT JOIN live ON TRUE
           LEFT JOIN deleted ON TRUE
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, %(change_id)s, fence.agent, fence.session_id, %(method)s, %(kind)s, result.outcome, result.item_id, result.revision
      FROM fence
           CROSS JOIN result
     WHERE result.outcome <> 'NOT_FOUND'
)
SELECT result.outcome, result.revealed
  FROM fence
       CROSS JOIN result;

-- name: get_item
-- The highest version of one name that this session may see. Nulls: not found.
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.level,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time
  FROM session
       LEFT JOIN LATERAL (
           SELECT visible.*
             FROM visible
            WHERE visible.tenant = %(tenant)s
              AND (visible.agent, visible.kind, visible.name) = (session.agent, %(kind)s, %(name)s)
            ORDER BY visible.level DESC
            LIMIT 1
       ) AS found ON TRUE
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s;

-- name: list_items
-- One page by name, each name at its highest visible level, tags looked at after the shadow. Nulls: nothing more.
-- bytes: the size of the page up to and with this row. The row that passes page_bytes is there too: it tells of more.
SELECT found.name, found.content, found.tags, found.level, found.item_id, found.revision,
       found.create_time, found.update_time, found.expire_time, found.bytes
  FROM session
       LEFT JOIN LATERAL (
           SELECT sized.*
             FROM (
                      SELECT seen.*, sum(seen.own_bytes) OVER (ORDER BY seen.name ROWS UNBOUNDED PRECEDING) AS bytes
                        FROM (
                                 SELECT DISTINCT ON (visible.name) visible.*,
                                        256 + octet_length(visible.name) + octet_length(visible.content)
                                        + octet_length(visible.tags::text) AS own_bytes
                                   FROM visible
                                  WHERE visible.tenant = %(tenant)s
                                    AND (visible.agent, visible.kind) = (session.agent, %(kind)s)
                                    AND visible.name > %(after)s
                                  ORDER BY visible.name, visible.level DESC
                             ) AS seen
                       WHERE seen.tags @> %(tags)s::text[]
                       ORDER BY seen.name
                       LIMIT %(limit)s
                  ) AS sized
            WHERE sized.bytes - sized.own_bytes <= %(page_bytes)s
       ) AS found ON TRUE
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s
 ORDER BY found.name;

-- name: record_read
-- The audit row of one read. No row: stale, and the answer may not leave.
INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision, result_count)
SELECT %(tenant)s, %(change_id)s, session.agent, session.session_id, %(method)s, %(kind)s, 'OK',
       %(item_id)s::uuid, %(revision)s::integer, %(result_count)s
  FROM session
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s;

-- name: record_refusal
-- The audit row of one refused call. No row: stale.
INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, outcome)
SELECT %(tenant)s, %(change_id)s, session.agent, session.session_id, %(method)s, %(outcome)s
  FROM session
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s;

-- name: get_own_session
-- The session itself, with the name of its agent.
SELECT session.session_id, agent.agent_id, session.conversation_id, session.taint, session.create_time, session.expire_time,
       NULL::timestamptz AS close_time
  FROM session
       JOIN agent
            ON agent.tenant = %(tenant)s
           AND agent.session_id = %(session_id)s
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s;
