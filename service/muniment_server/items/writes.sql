-- Writes of items, as the role of a level. Each writes its audit row and, except for passages, its revision.

-- name: save_item
-- session: locked
-- Save one memory, note or block at the session's own level. Outcome OK, ETAG_STALE, or PAST: it expires in the past.
-- Nothing has changed when the change_id returned is not the one given.
WITH below AS ( -- as the snapshot shows it: a lower row must not be locked
    SELECT visible.item_id, visible.revision, visible.create_time
      FROM visible
     WHERE (visible.kind, visible.name) = (%(kind)s, %(name)s)
       AND visible.label < (SELECT session.label FROM session)
     ORDER BY visible.label DESC
     LIMIT 1
),
live AS MATERIALIZED ( -- locked first if an etag is given, so that no INSERT takes its place
    SELECT 1
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND (own.kind, own.name) = (%(kind)s, %(name)s)
       AND own.delete_time IS NULL
       AND (own.expire_time IS NULL OR own.expire_time > vault.clock())
       AND %(etag_item)s::uuid IS NOT NULL
       FOR NO KEY UPDATE
),
expiry AS ( -- checked before the INSERT: Postgres logs a row that fails a CHECK. past is null if the etag is stale
    SELECT CASE WHEN %(etag_item)s IS NULL
                  OR (coalesce(below.item_id, %(etag_item)s), coalesce(below.revision, 0)) -- 0: the etag of no version
                     = (%(etag_item)s, %(etag_revision)s)
                  OR EXISTS (SELECT FROM live)
                THEN coalesce(%(expire_time)s <= session.time, FALSE) END AS past,
           session.time + %(position)s * interval '1 us' AS time
      FROM session
           LEFT JOIN below ON TRUE
),
new AS (
    INSERT INTO item AS own (tenant, agent, kind, name, item_id, change_id, tier, content, tags,
                             create_time, update_time, expire_time)
    SELECT %(tenant)s, session.agent, %(kind)s, %(name)s, %(item_id)s::uuid, %(change_id)s::uuid, %(tier)s, %(content)s, %(tags)s::text[],
           coalesce(CASE WHEN %(kind)s IN (2, 3) THEN below.create_time END, expiry.time),
           expiry.time, %(expire_time)s::timestamptz
      FROM session
           JOIN expiry ON NOT expiry.past
           LEFT JOIN below ON TRUE
        ON CONFLICT (tenant, agent, kind, name, level) WHERE delete_time IS NULL DO UPDATE
       SET (item_id, create_time, revision, change_id, update_time) = (
               SELECT CASE WHEN it.gone THEN %(successor_id)s::uuid ELSE own.item_id END,
                      CASE WHEN it.gone THEN excluded.create_time ELSE own.create_time END,
                      CASE WHEN it.gone THEN 1 ELSE own.revision + (NOT it.same)::int END,
                      CASE WHEN it.same THEN own.change_id ELSE excluded.change_id END,
                      CASE WHEN it.same THEN own.update_time ELSE excluded.update_time END
                 FROM (
                          SELECT own.expire_time <= excluded.update_time AS gone,
                                 (own.content, own.tags, own.expire_time)
                                 IS NOT DISTINCT FROM (excluded.content, excluded.tags, excluded.expire_time) AS same
                      ) AS it
           ),
           expire_time = excluded.expire_time,
           content     = excluded.content,
           tags        = excluded.tags
     WHERE %(etag_item)s IS NULL
        OR (own.item_id, own.revision) = (%(etag_item)s, %(etag_revision)s)
        OR own.expire_time <= excluded.update_time
 RETURNING own.*
),
counted AS ( -- one more item, unless a row was replaced: that of this item, or one that has expired and gives way to a successor
    INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, new.agent, new.change_id, (new.item_id = %(item_id)s)::int, 1, octet_length(new.content)
      FROM new
     WHERE new.change_id = %(change_id)s
),
ledger AS ( -- the revision is taken from what was actually stored
    INSERT INTO revision AS ledger (tenant, agent, item_id, revision, change_id, kind, name, content, tags, update_time, expire_time)
    SELECT %(tenant)s, new.agent, new.item_id, new.revision, new.change_id, %(kind)s, %(name)s, new.content, new.tags,
           new.update_time, new.expire_time
      FROM new
     WHERE new.change_id = %(change_id)s
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, %(change_id)s, session.agent, session.session_id, %(method)s, %(kind)s,
           CASE WHEN new.item_id IS NULL THEN 'ETAG_STALE' ELSE 'OK' END, new.item_id, new.revision
      FROM session
           JOIN expiry ON expiry.past IS NOT TRUE
           LEFT JOIN new ON TRUE
     WHERE new.item_id IS NULL
        OR new.change_id = %(change_id)s
)
SELECT CASE WHEN expiry.past THEN 'PAST' WHEN new.item_id IS NULL THEN 'ETAG_STALE' ELSE 'OK' END AS outcome,
       session.label, new.item_id, new.revision, new.create_time, new.update_time, new.expire_time
  FROM session
       CROSS JOIN expiry
       LEFT JOIN new ON TRUE;

-- name: delete_item
-- session: locked
-- Delete the own-level version of one name. Outcome OK, ETAG_STALE, WRITE_LEVEL_MISMATCH or NOT_FOUND.
-- revealed: the level at which a lower version is seen from now on.
WITH below AS MATERIALIZED (
    SELECT max(visible.label) AS label
      FROM visible
     WHERE (visible.kind, visible.name) = (%(kind)s, %(name)s)
       AND visible.label < (SELECT session.label FROM session)
),
live AS MATERIALIZED (
    SELECT own.item_id, own.revision
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND (own.kind, own.name) = (%(kind)s, %(name)s)
       AND own.delete_time IS NULL
       AND (own.expire_time IS NULL OR own.expire_time > vault.clock())
       FOR NO KEY UPDATE
),
deleted AS ( -- by name: the snapshot may still show the item that expired before this one
    UPDATE item AS own
       SET delete_time = session.time,
           change_id   = %(change_id)s::uuid
      FROM session
           CROSS JOIN live
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND (own.kind, own.name) = (%(kind)s, %(name)s)
       AND own.delete_time IS NULL
       AND (%(etag_item)s::uuid IS NULL OR (live.item_id, live.revision) = (%(etag_item)s, %(etag_revision)s))
 RETURNING own.item_id, own.revision
),
counted AS (
    INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, session.agent, %(change_id)s, -1, 0, 0
      FROM session
           CROSS JOIN deleted
),
result AS (
    SELECT CASE WHEN deleted.item_id IS NOT NULL THEN 'OK'
                WHEN live.item_id IS NOT NULL THEN 'ETAG_STALE'
                WHEN below.label IS NOT NULL THEN 'WRITE_LEVEL_MISMATCH'
                ELSE 'NOT_FOUND' END AS outcome,
           CASE WHEN deleted.item_id IS NOT NULL THEN below.label END AS revealed,
           deleted.item_id, deleted.revision
      FROM below
           LEFT JOIN live ON TRUE
           LEFT JOIN deleted ON TRUE
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, %(change_id)s, session.agent, session.session_id, %(method)s, %(kind)s, result.outcome, result.item_id, result.revision
      FROM session
           CROSS JOIN result
     WHERE result.outcome <> 'NOT_FOUND'
)
SELECT result.outcome, result.revealed
  FROM session
       CROSS JOIN result;

-- name: delete_items
-- session: locked
-- Delete the own-level items with a tag, or those of a thread: the first by name, up to as many as there are change ids and up to a
-- size. Lower versions are not looked at. Returns the names of those deleted, and whether there are more.
WITH matching AS MATERIALIZED ( -- locked in the order of names, so that two batches do not deadlock
    SELECT own.name, octet_length(own.content) AS bytes
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND own.kind = %(kind)s
       AND own.delete_time IS NULL
       AND (own.expire_time IS NULL OR own.expire_time > vault.clock())
       AND (%(tag)s::text IS NULL OR own.tags @> ARRAY[%(tag)s::text])
       AND (%(thread)s::text IS NULL OR own.thread = %(thread)s)
     ORDER BY own.name
     LIMIT cardinality(%(change_ids)s::uuid[]) + 1
       FOR NO KEY UPDATE
),
wanted AS MATERIALIZED (
    SELECT sized.name, (%(change_ids)s::uuid[])[sized.number] AS change_id
      FROM (
               SELECT matching.name, row_number() OVER (ORDER BY matching.name) AS number,
                      sum(matching.bytes) OVER (ORDER BY matching.name) - matching.bytes AS bytes_before
                 FROM matching
           ) AS sized
     WHERE sized.number <= cardinality(%(change_ids)s::uuid[])
       AND sized.bytes_before < %(max_bytes)s
),
deleted AS ( -- by name, as in delete_item
    UPDATE item AS own
       SET delete_time = session.time,
           change_id   = wanted.change_id
      FROM session
           CROSS JOIN wanted
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND (own.kind, own.name) = (%(kind)s, wanted.name)
       AND own.delete_time IS NULL
 RETURNING own.name, own.change_id, own.item_id, own.revision
),
counted AS (
    INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, session.agent, %(change_id)s, -total.items, 0, 0
      FROM session
           CROSS JOIN (SELECT count(*) AS items FROM deleted) AS total
     WHERE total.items > 0
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, deleted.change_id, session.agent, session.session_id, %(method)s, %(kind)s, 'OK', deleted.item_id, deleted.revision
      FROM session
           CROSS JOIN deleted
)
SELECT ARRAY(SELECT deleted.name FROM deleted ORDER BY deleted.name) AS names,
       (SELECT count(*) FROM matching) > (SELECT count(*) FROM deleted) AS more
  FROM session;

-- name: release_item
-- session: locked
-- The first half of a rename: delete the own-level version of one name, so that undelete_item can bring it back under a new one.
-- Outcome OK, ETAG_STALE, WRITE_LEVEL_MISMATCH, NOT_FOUND, or ALREADY_EXISTS: an item with the new name is visible. Only OK changes
-- anything. An own item of the new name that has expired is deleted too. revealed: as in delete_item.
WITH below AS MATERIALIZED (
    SELECT max(visible.label) FILTER (WHERE visible.name = %(name)s) AS label,
           max(visible.label) FILTER (WHERE visible.name = %(new_name)s) AS target_label
      FROM visible
     WHERE visible.kind = %(kind)s
       AND visible.name IN (%(name)s, %(new_name)s)
       AND visible.label < (SELECT session.label FROM session)
),
own_pair AS MATERIALIZED ( -- locked in the order of names
    SELECT own.name, own.item_id, own.revision, own.content, own.tags, own.create_time, own.expire_time,
           own.expire_time <= vault.clock() IS TRUE AS is_expired
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND own.kind = %(kind)s
       AND own.name IN (%(name)s, %(new_name)s)
       AND own.delete_time IS NULL
     ORDER BY own.name
       FOR NO KEY UPDATE
),
result AS MATERIALIZED (
    SELECT CASE WHEN source.item_id IS NULL AND below.label IS NULL THEN 'NOT_FOUND'
                WHEN source.item_id IS NULL THEN 'WRITE_LEVEL_MISMATCH'
                WHEN (source.item_id, source.revision) <> (%(etag_item)s::uuid, %(etag_revision)s) THEN 'ETAG_STALE'
                WHEN below.target_label IS NOT NULL OR target.item_id IS NOT NULL THEN 'ALREADY_EXISTS'
                ELSE 'OK' END AS outcome,
           below.label AS revealed, source.*
      FROM below
           LEFT JOIN own_pair AS source
                  ON source.name = %(name)s
                 AND NOT source.is_expired
           LEFT JOIN own_pair AS target
                  ON target.name = %(new_name)s
                 AND NOT target.is_expired
),
deleted AS (
    UPDATE item AS own
       SET delete_time = session.time
      FROM session
           CROSS JOIN own_pair
           CROSS JOIN result
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND (own.kind, own.name) = (%(kind)s, own_pair.name)
       AND own.delete_time IS NULL
       AND result.outcome = 'OK'
 RETURNING own.item_id
),
counted AS (
    INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, session.agent, %(release_id)s, -total.items, 0, 0
      FROM session
           CROSS JOIN (SELECT count(*) AS items FROM deleted) AS total
     WHERE total.items > 0
),
logged AS ( -- undelete_item writes the row of a rename that succeeds
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome)
    SELECT %(tenant)s, %(release_id)s, session.agent, session.session_id, %(method)s, %(kind)s, result.outcome
      FROM session
           CROSS JOIN result
     WHERE result.outcome IN ('ETAG_STALE', 'WRITE_LEVEL_MISMATCH')
)
SELECT result.outcome, result.revealed, session.label, session.time, result.item_id, result.revision, result.content,
       result.tags, result.create_time, result.expire_time
  FROM session
       CROSS JOIN result;

-- name: undelete_item
-- session: locked
-- Bring one deleted item of the own level back under a name, as its next revision; a passage as it was. The row is moved, because an INSERT that
-- finds the name taken does nothing, while an UPDATE would fail. is_back FALSE: it is gone or has expired, or another item has its
-- name. Then the transaction must not be committed.
WITH moved AS (
    DELETE FROM deleted_item AS moved -- on a cluster FROM item: see ADR 14
     WHERE moved.tenant = %(tenant)s
       AND moved.agent = (SELECT session.agent FROM session)
       AND moved.delete_time IS NOT NULL
       AND moved.item_id = %(item_id)s
       AND (moved.expire_time IS NULL OR moved.expire_time > (SELECT session.time FROM session))
 RETURNING moved.kind, moved.item_id, moved.revision, moved.tier, moved.content, moved.tags, moved.thread,
           moved.author, moved.event_time, moved.create_time, moved.expire_time
),
new AS (
    INSERT INTO item AS new (tenant, agent, kind, name, item_id, revision, change_id, tier, content, tags, thread, author,
                             event_time, create_time, update_time, expire_time)
    SELECT %(tenant)s, session.agent, moved.kind, %(name)s, moved.item_id, moved.revision + (moved.kind <> 4)::integer,
           %(change_id)s::uuid, moved.tier, moved.content, moved.tags, moved.thread, moved.author, moved.event_time,
           moved.create_time, session.time, moved.expire_time
      FROM session
           CROSS JOIN moved
        ON CONFLICT (tenant, agent, kind, name, level) WHERE delete_time IS NULL DO NOTHING
 RETURNING new.agent, new.kind, new.name, new.item_id, new.revision, new.change_id, new.content, new.tags, new.update_time,
           new.expire_time
),
counted AS ( -- passages have no ledger: theirs have been counted all the time
    INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, new.agent, new.change_id, 1, (new.kind <> 4)::integer,
           CASE WHEN new.kind <> 4 THEN octet_length(new.content) ELSE 0 END
      FROM new
),
ledger AS (
    INSERT INTO revision AS ledger (tenant, agent, item_id, revision, change_id, kind, name, content, tags, update_time, expire_time)
    SELECT %(tenant)s, new.agent, new.item_id, new.revision, new.change_id, new.kind, new.name, new.content, new.tags,
           new.update_time, new.expire_time
      FROM new
     WHERE new.kind <> 4
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, new.change_id, session.agent, session.session_id, %(method)s, new.kind, 'OK', new.item_id, new.revision
      FROM session
           CROSS JOIN new
)
SELECT EXISTS (SELECT FROM new) AS is_back
  FROM session;

-- name: store_passages
-- session: locked
-- Store the passages that do not exist yet, in order, up to the first refused one: its id belongs to another content, or it
-- expires in the past.
-- Outcome OK, EXISTS, ALREADY_EXISTS, PAST (the expire time), or null: undecided, because of an earlier passage or another writer.
WITH given AS MATERIALIZED (
    SELECT given.*
      FROM jsonb_to_recordset(%(passages)s) AS given (position integer, name text, item_id uuid, change_id uuid, content text,
                                                      tags text[], thread text, author text, event_time timestamptz,
                                                      expire_time timestamptz)
),
known AS MATERIALIZED ( -- the highest visible passage of each id
    SELECT DISTINCT ON (given.position) given.position, given.content = visible.content AS same, visible.*
      FROM given
           JOIN visible
                ON (visible.kind, visible.name) = (4, given.name)
     ORDER BY given.position, visible.label DESC
),
refused AS MATERIALIZED (
    SELECT min(given.position) AS position
      FROM session
           CROSS JOIN given
           LEFT JOIN known ON known.position = given.position
     WHERE NOT known.same
        OR known.position IS NULL AND given.expire_time <= session.time
),
expiring AS MATERIALIZED ( -- locked by name: otherwise two batches of the same ids could deadlock
    SELECT own.item_id
      FROM item AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       AND own.kind = 4
       AND own.name = ANY(ARRAY(SELECT given.name FROM given))
       AND own.delete_time IS NULL
       AND own.expire_time <= vault.clock()
     ORDER BY own.name
       FOR NO KEY UPDATE
),
expired AS ( -- treated as deleted; it still occupies the unique index
    UPDATE item AS own
       SET delete_time = session.time
      FROM session
           CROSS JOIN expiring
     WHERE own.tenant = %(tenant)s
       AND (own.agent, own.item_id) = (session.agent, expiring.item_id)
       AND own.delete_time IS NULL
 RETURNING own.item_id
),
stored AS ( -- inserted by name, for the same reason
    INSERT INTO item AS own (tenant, agent, kind, name, item_id, change_id, content, tags, thread, author, event_time,
                             create_time, update_time, expire_time)
    SELECT %(tenant)s, session.agent, 4, given.name, given.item_id, given.change_id, given.content, given.tags, given.thread,
           given.author, coalesce(given.event_time, session.time + given.position * interval '1 microsecond'),
           session.time + given.position * interval '1 microsecond', session.time, given.expire_time
      FROM session
           CROSS JOIN given
     WHERE (SELECT count(*) FROM expired) >= 0
       AND given.position NOT IN (SELECT known.position FROM known)
       AND given.position < coalesce((SELECT refused.position FROM refused), %(count)s)
     ORDER BY given.name
        ON CONFLICT (tenant, agent, kind, name, level) WHERE delete_time IS NULL DO NOTHING
 RETURNING own.*
),
counted AS ( -- also if items have expired and none is stored
    INSERT INTO storage AS counted (tenant, agent, change_id, items, versions, bytes)
    SELECT %(tenant)s, session.agent, %(change_id)s, added.items - removed.items, added.items, added.bytes
      FROM session
           CROSS JOIN (SELECT count(*) AS items, coalesce(sum(octet_length(stored.content)), 0) AS bytes FROM stored) AS added
           CROSS JOIN (SELECT count(*) AS items FROM expired) AS removed
     WHERE (added.items, removed.items) <> (0, 0)
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, session_id, method, kind, outcome, item_id, revision)
    SELECT %(tenant)s, stored.change_id, session.agent, session.session_id, %(method)s, 4, 'OK', stored.item_id, stored.revision
      FROM session
           CROSS JOIN stored
)
SELECT CASE WHEN stored.item_id IS NOT NULL THEN 'OK' WHEN known.same THEN 'EXISTS'
            WHEN NOT known.same THEN 'ALREADY_EXISTS'
            WHEN given.expire_time <= session.time THEN 'PAST' END AS outcome,
       given.name, given.content,
       CASE WHEN stored.item_id IS NULL THEN known.label ELSE session.label END AS label, coalesce(stored.tags, known.tags) AS tags,
       coalesce(stored.thread, known.thread) AS thread, coalesce(stored.author, known.author) AS author,
       coalesce(stored.event_time, known.event_time) AS event_time,
       coalesce(stored.create_time, known.create_time) AS create_time,
       coalesce(stored.expire_time, known.expire_time) AS expire_time
  FROM session
       CROSS JOIN given
       LEFT JOIN known ON known.position = given.position
       LEFT JOIN stored ON stored.name = given.name
 ORDER BY given.position;

-- name: fold_storage
-- Compact what is counted at the own level. Never waits: rows that another transaction compacts are skipped.
WITH locked AS MATERIALIZED (
    SELECT own.change_id
      FROM storage AS own
     WHERE own.tenant = %(tenant)s
       AND own.agent = (SELECT session.agent FROM session)
       FOR UPDATE SKIP LOCKED
),
folded AS (
    DELETE FROM storage AS folded
     USING locked
     WHERE folded.tenant = %(tenant)s
       AND folded.agent = (SELECT session.agent FROM session)
       AND folded.change_id = locked.change_id
 RETURNING folded.items, folded.versions, folded.bytes
)
INSERT INTO storage AS total (tenant, agent, change_id, items, versions, bytes)
SELECT %(tenant)s, session.agent, %(fold_id)s, sum(folded.items), sum(folded.versions), sum(folded.bytes)
  FROM session
       CROSS JOIN folded
 GROUP BY session.agent;
