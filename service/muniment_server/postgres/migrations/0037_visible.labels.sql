-- The windows of one label: open sessions of conversations with this label, and what it may read: its own, and what flows to it.
-- The number of a label orders the versions of a name: the level first, then untrusted above trusted. It is not the order of flow.

SET LOCAL search_path = muniment_{label};

-- Its FROM fixes the order of locks: conversation, session.
CREATE OR REPLACE VIEW session WITH (security_barrier = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time,
       0 AS fence, -- UPDATE on it is the right to lock
       session.ceiling, {rank}::smallint AS label
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id, ceiling)
 WHERE conversation.taint = {number}
   AND conversation.trusted = {trusted}
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();

CREATE OR REPLACE VIEW agent WITH (security_barrier = true) AS
SELECT session.tenant, session.session_id, agent.agent_id, agent.language,
       agent.memory_enabled, agent.user_profile_enabled, agent.memory_char_limit, agent.user_char_limit,
       agent.max_items, agent.max_bytes, agent.max_revisions
  FROM session
       JOIN vault.agent USING (tenant, agent);

CREATE OR REPLACE VIEW link WITH (security_barrier = true) AS
SELECT session.tenant, session.session_id, block_link.owner, block_link.label, agent.agent_id AS owner_agent_id
  FROM session
       JOIN vault.block_link ON (block_link.tenant, block_link.consumer) = (session.tenant, session.agent)
       JOIN vault.agent ON (agent.tenant, agent.agent) = (block_link.tenant, block_link.owner)
 WHERE agent.known_from <= session.ceiling;

DO $$
DECLARE
    source record;
    readable text[] := ARRAY['item', 'revision', 'chunk', 'stat', 'meaning', 'remote_embedding', 'embedding_list'];
    live text := 'expire_time IS NULL OR expire_time > vault.clock()';
    rows_of text[] := '{}';
BEGIN
    FOR source IN
        SELECT 'muniment_' || lower(level.name) || CASE WHEN each.trusted THEN '_trusted' ELSE '' END AS schema,
               2 * level.number - each.trusted::integer AS rank
          FROM unnest(ARRAY['public', 'internal', 'confidential', 'restricted']) WITH ORDINALITY AS level (name, number)
               CROSS JOIN (VALUES (TRUE), (FALSE)) AS each (trusted)
         WHERE level.number <= {number}
           AND (each.trusted OR NOT {trusted})
         ORDER BY rank
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO muniment_{label}', source.schema);
        FOR place IN 1 .. array_length(readable, 1) LOOP
            EXECUTE format('GRANT SELECT ON %I.%I TO muniment_{label}', source.schema, readable[place]);
            rows_of[place] := concat_ws(' UNION ALL ', rows_of[place],
                CASE readable[place]
                    WHEN 'revision' THEN
                        format('SELECT tenant, agent, %s::smallint AS level, item_id, revision, content, tags, update_time, expire_time,'
                               ' %s::smallint AS label FROM %I.revision', (source.rank + 1) / 2, source.rank, source.schema)
                    ELSE format('SELECT *, %s::smallint AS label FROM %I.%I', source.rank, source.schema, readable[place])
                END);
        END LOOP;
    END LOOP;
    EXECUTE 'CREATE OR REPLACE VIEW visible WITH (security_invoker = true) AS SELECT * FROM (' || rows_of[1]
            || ') AS item WHERE delete_time IS NULL AND (' || live || ')';
    EXECUTE 'CREATE OR REPLACE VIEW visible_revision WITH (security_invoker = true) AS SELECT * FROM (' || rows_of[2]
            || ') AS revision WHERE ' || live;
    EXECUTE 'CREATE OR REPLACE VIEW visible_chunk WITH (security_invoker = true) AS SELECT * FROM (' || rows_of[3]
            || ') AS chunk WHERE ' || live;
    FOR place IN 4 .. 7 LOOP
        EXECUTE format('CREATE OR REPLACE VIEW visible_%s WITH (security_invoker = true) AS ', readable[place]) || rows_of[place];
    END LOOP;
END
$$;

CREATE OR REPLACE VIEW shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM link
       JOIN visible ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

GRANT SELECT ON session, agent, link, visible, visible_revision, visible_chunk, visible_stat, visible_meaning,
      visible_remote_embedding, visible_embedding_list, shared_visible
   TO muniment_{label};
GRANT UPDATE (fence) ON session TO muniment_{label};
