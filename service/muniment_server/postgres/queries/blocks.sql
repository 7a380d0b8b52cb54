-- Core blocks, as the role of one level: own ones and those that others share. See items.sql.

-- name: list_blocks
-- One page by label, of one label the own block first, then by owner; each at its highest visible level.
-- Nulls: nothing more. bytes: as in list_items.
SELECT agent.agent_id, found.owner_agent_id, found.name, found.content, found.level, found.item_id, found.revision,
       found.create_time, found.update_time, found.bytes
  FROM session
       JOIN agent
            ON agent.tenant = %(tenant)s
           AND agent.session_id = %(session_id)s
       LEFT JOIN LATERAL (
           SELECT sized.*
             FROM (
                      SELECT page.*, sum(page.own_bytes) OVER (ORDER BY page.name, page.owner_agent_id NULLS FIRST
                                                               ROWS UNBOUNDED PRECEDING) AS bytes
                        FROM (
                                 SELECT DISTINCT ON (seen.name, seen.owner_agent_id) seen.*,
                                        %(overhead)s + octet_length(seen.content) AS own_bytes
                                   FROM (
                                            SELECT NULL::text COLLATE "C" AS owner_agent_id, visible.name, visible.content, visible.level, visible.item_id, visible.revision, visible.create_time, visible.update_time
                                              FROM visible
                                             WHERE visible.tenant = %(tenant)s
                                               AND (visible.agent, visible.kind) = (session.agent, 3)
                                             UNION ALL
                                            SELECT shared.owner_agent_id, shared.name, shared.content, shared.level, shared.item_id, shared.revision, shared.create_time, shared.update_time
                                              FROM shared_visible AS shared
                                             WHERE shared.tenant = %(tenant)s
                                               AND shared.session_id = %(session_id)s
                                        ) AS seen
                                  WHERE (seen.name, coalesce(seen.owner_agent_id, '')) > (%(after_label)s, %(after_owner)s)
                                  ORDER BY seen.name, seen.owner_agent_id NULLS FIRST, seen.level DESC
                                  LIMIT %(limit)s
                             ) AS page
                  ) AS sized
            WHERE sized.bytes - sized.own_bytes <= %(page_bytes)s
       ) AS found ON TRUE
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s
 ORDER BY found.name, found.owner_agent_id NULLS FIRST;

-- name: get_block
-- The block of one label: the own one, else the first shared one by owner, or just that of one owner; at its highest visible level.
-- Nulls: not found.
SELECT agent.agent_id, found.owner_agent_id, found.name, found.content, found.level, found.item_id, found.revision,
       found.create_time, found.update_time
  FROM session
       JOIN agent
            ON agent.tenant = %(tenant)s
           AND agent.session_id = %(session_id)s
       LEFT JOIN LATERAL (
           SELECT seen.*
             FROM (
                      SELECT NULL::text COLLATE "C" AS owner_agent_id, visible.name, visible.content, visible.level, visible.item_id, visible.revision, visible.create_time, visible.update_time
                        FROM visible
                       WHERE visible.tenant = %(tenant)s
                         AND (visible.agent, visible.kind, visible.name) = (session.agent, 3, %(name)s)
                       UNION ALL
                      SELECT shared.owner_agent_id, shared.name, shared.content, shared.level, shared.item_id, shared.revision, shared.create_time, shared.update_time
                        FROM shared_visible AS shared
                       WHERE shared.tenant = %(tenant)s
                         AND shared.session_id = %(session_id)s
                         AND shared.name = %(name)s
                  ) AS seen
            WHERE %(owner_agent_id)s::text IS NULL
               OR %(owner_agent_id)s = coalesce(seen.owner_agent_id, agent.agent_id)
            ORDER BY seen.owner_agent_id NULLS FIRST, seen.level DESC
            LIMIT 1
       ) AS found ON TRUE
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s;
