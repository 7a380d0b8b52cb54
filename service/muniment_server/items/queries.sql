-- Reads of items, as the role of a level. The same text serves every level.
-- A row of nulls means that the session is open and the item was not found.

-- name: get_item
-- The highest version of one name that this session may see. Nulls: not found.
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.label,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time, found.newest_label, found.newest_time
  FROM session
       LEFT JOIN LATERAL (
           SELECT visible.*, first_value(visible.label) OVER (ORDER BY visible.update_time DESC, visible.label DESC) AS newest_label,
                  first_value(visible.update_time) OVER (ORDER BY visible.update_time DESC, visible.label DESC) AS newest_time
             FROM visible
            WHERE (visible.kind, visible.name) = (%(kind)s, %(name)s)
            ORDER BY visible.label DESC
            LIMIT 1
       ) AS found ON TRUE;

-- name: get_own_version
-- The live version of one item at the own level, by the id of the item. Nulls: not found.
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.label,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time, found.label AS newest_label,
       found.update_time AS newest_time
  FROM session
       LEFT JOIN visible AS found
              ON (found.kind, found.item_id, found.label) = (%(kind)s, %(item_id)s, session.label);

-- name: get_room
-- What the session's agent has stored at the session's level, its limits, and what becomes of the names to be written: how many
-- have an item already, also an expired one, which is replaced; how many are changed, by how many bytes, and the highest
-- revision of these. Passages are never changed, nor is an item with the same content, tags and expire time.
SELECT agent.max_items, agent.max_bytes, agent.max_revisions, total.items, total.bytes,
       written.existing, written.changed, written.changed_bytes, written.revision
  FROM session
       CROSS JOIN agent
       CROSS JOIN (
           SELECT coalesce(sum(storage_size.items), 0)::bigint AS items,
                  coalesce(sum(storage_size.bytes), 0)::bigint AS bytes
             FROM storage_size
       ) AS total
       CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE own_item.name IS NOT NULL OR live.same IS NOT NULL) AS existing,
                  count(*) FILTER (WHERE live.same IS NOT TRUE) AS changed,
                  coalesce(sum(given.size) FILTER (WHERE live.same IS NOT TRUE), 0)::bigint AS changed_bytes,
                  coalesce(max(live.revision) FILTER (WHERE NOT live.same), 0) AS revision
             FROM jsonb_to_recordset(%(versions)s) AS given (name text, size bigint, content text, tags text[], expire_time timestamptz)
                  LEFT JOIN own_item
                         ON (own_item.kind, own_item.name) = (%(kind)s, given.name)
                  CROSS JOIN LATERAL (
                      SELECT max(visible.revision) AS revision,
                             bool_or(visible.kind = 4
                                     OR (visible.content, visible.tags, visible.expire_time)
                                        IS NOT DISTINCT FROM (given.content, given.tags, given.expire_time)) AS same
                        FROM visible
                       WHERE (visible.kind, visible.name) = (%(kind)s, given.name)
                         AND (visible.label = session.label OR visible.kind = 4)
                  ) AS live
       ) AS written;

-- name: list_items
-- One page by name, each name at its highest visible level; the tag filter comes after the shadow. The prefix filter may come
-- before it, since all versions that shadow each other have the same name. Nulls: nothing more.
-- bytes: the size of the page up to and including this row. One extra row, the one that exceeds page_bytes, signals that there are more.
SELECT found.name, found.tier, found.content, found.tags, found.thread, found.author, found.event_time, found.label,
       found.item_id, found.revision, found.create_time, found.update_time, found.expire_time, found.newest_label, found.newest_time,
       found.bytes
  FROM session
       LEFT JOIN LATERAL (
           SELECT sized.*, newest.label AS newest_label, newest.update_time AS newest_time
             FROM (
                      SELECT seen.*, sum(seen.own_bytes) OVER (ORDER BY seen.name ROWS UNBOUNDED PRECEDING) AS bytes
                        FROM (
                                 SELECT DISTINCT ON (visible.name) visible.*,
                                        256 + octet_length(visible.name) + octet_length(visible.content)
                                        + octet_length(visible.tags::text) AS own_bytes
                                   FROM visible
                                  WHERE visible.kind = %(kind)s
                                    AND visible.name > %(after)s
                                    AND visible.name >= %(name_prefix)s
                                    AND visible.name < %(after_prefix)s
                                  ORDER BY visible.name, visible.level DESC, visible.label DESC -- the level alone is in the index
                             ) AS seen
                       WHERE seen.tags @> %(tags)s::text[]
                       ORDER BY seen.name
                       LIMIT %(limit)s
                  ) AS sized
                  CROSS JOIN LATERAL (
                      SELECT visible.label, visible.update_time
                        FROM visible
                       WHERE (visible.kind, visible.name) = (%(kind)s, sized.name)
                       ORDER BY visible.update_time DESC, visible.label DESC
                       LIMIT 1
                  ) AS newest
            WHERE sized.bytes - sized.own_bytes <= %(page_bytes)s
       ) AS found ON TRUE
 ORDER BY found.name;

-- name: get_block
-- The block of one label: the own one, else the first shared one by owner; or only that of one owner. At its highest visible level.
-- Nulls: not found.
SELECT CASE WHEN found.item_id IS NOT NULL THEN agent.agent_id END AS agent_id, found.owner_agent_id, found.name, found.content, found.label, found.item_id, found.revision,
       found.create_time, found.update_time, found.newest_label, found.newest_time
  FROM session
       CROSS JOIN agent
       LEFT JOIN LATERAL (
           SELECT seen.*,
                  first_value(seen.label) OVER (PARTITION BY seen.owner_agent_id
                                                ORDER BY seen.update_time DESC, seen.label DESC) AS newest_label,
                  first_value(seen.update_time) OVER (PARTITION BY seen.owner_agent_id
                                                      ORDER BY seen.update_time DESC, seen.label DESC) AS newest_time
             FROM (
                      SELECT NULL::text COLLATE "C" AS owner_agent_id, visible.name, visible.content, visible.label, visible.item_id, visible.revision, visible.create_time, visible.update_time
                        FROM visible
                       WHERE (visible.kind, visible.name) = (3, %(name)s)
                       UNION ALL
                      SELECT shared.owner_agent_id, shared.name, shared.content, shared.label, shared.item_id, shared.revision, shared.create_time, shared.update_time
                        FROM shared_visible AS shared
                       WHERE shared.name = %(name)s
                  ) AS seen
            WHERE %(owner_agent_id)s::text IS NULL
               OR %(owner_agent_id)s = coalesce(seen.owner_agent_id, agent.agent_id)
            ORDER BY seen.owner_agent_id NULLS FIRST, seen.label DESC
            LIMIT 1
       ) AS found ON TRUE;

-- name: list_versions
-- One page of the visible versions of one name, newest first: the own ones, else those of the first shared block by owner; or only
-- those of one owner. With revisions: also what the own ones have replaced, each before what it has replaced, even if clocks went back.
-- after_revisions: at each level, the revision after which the page begins. Nulls: nothing more. bytes: as in list_items.
SELECT found.content, found.tags, found.label, found.item_id, found.revision, found.update_time, found.expire_time, found.replaced,
       CASE WHEN found.item_id IS NOT NULL THEN coalesce(found.owner_agent_id, agent.agent_id) END AS owner_agent_id, found.bytes
  FROM session
       CROSS JOIN agent
       LEFT JOIN LATERAL (
           SELECT page.*, sum(page.own_bytes) OVER (ORDER BY page.time DESC, page.label DESC, page.revision DESC
                                                    ROWS UNBOUNDED PRECEDING) AS bytes
             FROM (
                      SELECT live.owner_agent_id, live.label, live.item_id, version.*,
                             min(version.update_time) OVER (PARTITION BY live.label ORDER BY version.revision DESC) AS time,
                             256 + octet_length(version.content) + octet_length(version.tags::text) AS own_bytes
                        FROM (
                                 SELECT seen.*, min(coalesce(seen.owner_agent_id, '')) OVER () AS first_owner
                                   FROM (
                                            SELECT NULL::text COLLATE "C" AS owner_agent_id, visible.content, visible.tags, visible.label, visible.item_id, visible.revision, visible.update_time, visible.expire_time
                                              FROM visible
                                             WHERE (visible.kind, visible.name) = (%(kind)s, %(name)s)
                                             UNION ALL
                                            SELECT shared.owner_agent_id, shared.content, shared.tags, shared.label, shared.item_id, shared.revision, shared.update_time, shared.expire_time
                                              FROM shared_visible AS shared
                                             WHERE (shared.kind, shared.name) = (%(kind)s, %(name)s)
                                        ) AS seen
                                  WHERE %(owner_agent_id)s::text IS NULL
                                     OR %(owner_agent_id)s = coalesce(seen.owner_agent_id, agent.agent_id)
                             ) AS live
                             CROSS JOIN LATERAL (
                                 SELECT live.revision, live.content, live.tags, live.update_time, live.expire_time, FALSE AS replaced
                                  UNION ALL
                                 (SELECT old.revision, old.content, old.tags, old.update_time, old.expire_time, TRUE
                                    FROM visible_revision AS old
                                   WHERE %(with_revisions)s
                                     AND (old.label, old.item_id) = (live.label, live.item_id)
                                     AND old.revision < least(live.revision, (%(after_revisions)s::integer[])[live.label])
                                   ORDER BY old.revision DESC
                                   LIMIT %(limit)s)
                             ) AS version
                       WHERE coalesce(live.owner_agent_id, '') = live.first_owner
                         AND version.revision < (%(after_revisions)s::integer[])[live.label]
                       ORDER BY time DESC, live.label DESC, version.revision DESC
                       LIMIT %(limit)s
                  ) AS page
       ) AS found
              ON found.bytes - found.own_bytes <= %(page_bytes)s
 ORDER BY found.time DESC, found.label DESC, found.revision DESC;

-- name: list_blocks
-- One page by label and owner, the own block of a label first; each at its highest visible level.
-- Nulls: nothing more. bytes: as in list_items. With smallest_first, bytes is the size of this
-- block and all smaller ones; every block is returned, and those beyond page_bytes without their content.
SELECT CASE WHEN found.item_id IS NOT NULL THEN agent.agent_id END AS agent_id, found.owner_agent_id, found.name,
       CASE WHEN %(smallest_first)s AND found.bytes > %(page_bytes)s THEN '' ELSE found.content END AS content,
       found.label, found.item_id, found.revision, found.create_time, found.update_time, found.newest_label,
       found.newest_time, found.bytes
  FROM session
       CROSS JOIN agent
       LEFT JOIN LATERAL (
           SELECT sized.*
             FROM (
                      SELECT page.*, sum(page.own_bytes) OVER (ORDER BY CASE WHEN %(smallest_first)s THEN page.own_bytes END,
                                                                        page.name, page.owner_agent_id NULLS FIRST
                                                               ROWS UNBOUNDED PRECEDING) AS bytes
                        FROM (
                                 SELECT DISTINCT ON (seen.name, seen.owner_agent_id) seen.*,
                                        %(overhead)s + octet_length(seen.content) AS own_bytes,
                                        first_value(seen.label) OVER (
                                            PARTITION BY seen.name, seen.owner_agent_id ORDER BY seen.update_time DESC, seen.label DESC
                                        ) AS newest_label,
                                        first_value(seen.update_time) OVER (
                                            PARTITION BY seen.name, seen.owner_agent_id ORDER BY seen.update_time DESC, seen.label DESC
                                        ) AS newest_time
                                   FROM (
                                            SELECT NULL::text COLLATE "C" AS owner_agent_id, visible.name, visible.content, visible.label, visible.item_id, visible.revision, visible.create_time, visible.update_time
                                              FROM visible
                                             WHERE visible.kind = 3
                                             UNION ALL
                                            SELECT shared.owner_agent_id, shared.name, shared.content, shared.label, shared.item_id, shared.revision, shared.create_time, shared.update_time
                                              FROM shared_visible AS shared
                                        ) AS seen
                                  WHERE (seen.name, coalesce(seen.owner_agent_id, '')) > (%(after_label)s, %(after_owner)s)
                                  ORDER BY seen.name, seen.owner_agent_id NULLS FIRST, seen.label DESC
                                  LIMIT %(limit)s
                             ) AS page
                  ) AS sized
            WHERE %(smallest_first)s
               OR sized.bytes - sized.own_bytes <= %(page_bytes)s
       ) AS found ON TRUE
 ORDER BY found.name, found.owner_agent_id NULLS FIRST;

-- name: note_versions
-- Every visible version of every note, with the settings of the agent in each row. Nulls: no notes.
SELECT agent.memory_enabled, agent.user_profile_enabled, agent.memory_char_limit, agent.user_char_limit,
       note.name, note.tier, note.content, note.label, note.item_id, note.revision, note.create_time, note.update_time
  FROM session
       CROSS JOIN agent
       LEFT JOIN visible AS note
              ON note.kind = 2;

-- name: get_deleted_item
-- The last item of one name at the own level, if it is deleted and has not expired; and whether one is live.
-- item_id NULL: it is live, has expired, or there is none.
SELECT live.item_id IS NOT NULL AS is_live, last.item_id, last.revision, last.tier, last.content, last.tags, last.author
  FROM session
       LEFT JOIN visible AS live
              ON (live.kind, live.name, live.label) = (%(kind)s, %(name)s, session.label)
       LEFT JOIN LATERAL (
           SELECT deleted_item.*
             FROM deleted_item
            WHERE (deleted_item.kind, deleted_item.name) = (%(kind)s, %(name)s)
            ORDER BY deleted_item.delete_time DESC, deleted_item.create_time DESC, deleted_item.item_id
            LIMIT 1
       ) AS last
              ON (last.expire_time IS NULL OR last.expire_time > session.time)
             AND NOT EXISTS (
                     SELECT
                       FROM own_item
                      WHERE (own_item.kind, own_item.name) = (%(kind)s, %(name)s)
                 );
