-- Notes, as the role of one level: several are judged together before one is written. See items.sql.

-- name: lock_shelf
-- From here to the commit this session's transaction is the only writer of notes and blocks of its agent at its level.
-- A statement of its own: one that waits for a lock does not see what it waited for.
WITH fence AS MATERIALIZED (
    SELECT session.*
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
       FOR NO KEY UPDATE
)
SELECT (
           SELECT agent.agent_id
             FROM agent
            WHERE agent.tenant = %(tenant)s
              AND agent.session_id = %(session_id)s
       ) AS agent_id
  FROM shelf
 WHERE shelf.tenant = %(tenant)s
   AND shelf.agent = (SELECT fence.agent FROM fence)
   FOR NO KEY UPDATE;

-- name: note_versions
-- Every visible version of every note, with the settings of the agent in each row. Nulls: no notes.
WITH fence AS MATERIALIZED ( -- known first: without statistics, a join would look at other agents' items
    SELECT session.agent
      FROM session
     WHERE session.tenant = %(tenant)s
       AND session.session_id = %(session_id)s
)
SELECT agent.memory_enabled, agent.user_profile_enabled, agent.memory_char_limit, agent.user_char_limit,
       note.name, note.tier, note.content, note.level, note.item_id, note.revision, note.create_time, note.update_time
  FROM fence
       JOIN agent
            ON agent.tenant = %(tenant)s
           AND agent.session_id = %(session_id)s
       LEFT JOIN visible AS note
            ON note.tenant = %(tenant)s
           AND (note.agent, note.kind) = ((SELECT fence.agent FROM fence), 2);
