-- Removes what is old, for an operator.

-- name: purge
-- Remove versions that were deleted, overwritten or expired before a time, at the level of the search path: all, or those of
-- one tenant, agent, kind or name; none of agents that are held. Audit rows stay. Each new one names its agent, since whoever reads it must reach the ceiling
-- of that.
WITH held AS MATERIALIZED (
    SELECT agent.tenant, agent.agent
      FROM vault.agent
     WHERE agent.held
),
old_item AS (
    DELETE FROM item AS old_item
     WHERE (old_item.tenant, old_item.agent) NOT IN (SELECT held.tenant, held.agent FROM held)
       AND (old_item.delete_time < %(before)s OR old_item.expire_time < %(before)s)
       AND (%(tenant)s::bigint IS NULL OR old_item.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR old_item.agent = %(agent)s)
       AND (%(kind)s::smallint IS NULL OR old_item.kind = %(kind)s)
       AND (%(name)s::text IS NULL OR old_item.name = %(name)s)
 RETURNING old_item.tenant, old_item.agent, old_item.item_id, old_item.kind, old_item.delete_time,
           octet_length(old_item.content) AS bytes
),
unindexed AS ( -- expired chunks: those of deleted items have already been removed
    DELETE FROM chunk AS unindexed
     WHERE unindexed.expire_time < %(before)s
       AND (unindexed.tenant, unindexed.agent) NOT IN (SELECT held.tenant, held.agent FROM held)
       AND (%(tenant)s::bigint IS NULL OR unindexed.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR unindexed.agent = %(agent)s)
       AND (%(kind)s::smallint IS NULL OR unindexed.kind = %(kind)s)
       AND (%(name)s::text IS NULL OR unindexed.name = %(name)s)
 RETURNING unindexed.tenant, unindexed.agent, unindexed.kind, unindexed.language, unindexed.stem_count, unindexed.gram_count
),
counted AS (
    INSERT INTO stat AS counted (tenant, agent, kind, language, change_id, chunks, stems, grams)
    SELECT unindexed.tenant, unindexed.agent, unindexed.kind, unindexed.language, gen_random_uuid(),
           -count(*), -sum(unindexed.stem_count), -sum(unindexed.gram_count)
      FROM unindexed
     GROUP BY unindexed.tenant, unindexed.agent, unindexed.kind, unindexed.language
),
old_revision AS (
    DELETE FROM revision AS old_revision
     WHERE (old_revision.tenant, old_revision.agent) NOT IN (SELECT held.tenant, held.agent FROM held)
       AND (%(tenant)s::bigint IS NULL OR old_revision.tenant = %(tenant)s)
       AND (%(agent)s::bigint IS NULL OR old_revision.agent = %(agent)s)
       AND (%(kind)s::smallint IS NULL OR old_revision.kind = %(kind)s)
       AND (
               EXISTS ( -- whatever its name was at that revision
                   SELECT
                     FROM old_item
                    WHERE (old_item.tenant, old_item.agent, old_item.item_id) = (old_revision.tenant, old_revision.agent, old_revision.item_id)
               )
            OR (
                   %(name)s::text IS NULL
                OR EXISTS ( -- that or a later one: if only those of a name went, renames would leave gaps
                       SELECT
                         FROM revision AS named
                        WHERE (named.tenant, named.agent, named.item_id)
                              = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                          AND named.revision >= old_revision.revision
                          AND named.name = %(name)s
                   )
               )
           AND (
                   ( -- overwritten before that time: the next version that is left is older
                       SELECT newer.update_time
                         FROM revision AS newer
                        WHERE (newer.tenant, newer.agent, newer.item_id)
                              = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                          AND newer.revision > old_revision.revision
                        ORDER BY newer.revision
                        LIMIT 1
                   ) < %(before)s
                OR ( -- the next one was erased. After a restore, an audit row may name one that the database never had, or has written anew
                       (old_revision.tenant, old_revision.agent, old_revision.item_id, old_revision.revision + 1) IN (
                           SELECT audit.tenant, audit.agent, audit.item_id, audit.revision
                             FROM muniment_control.audit
                            WHERE audit.method = 'EraseItems'
                              AND audit.outcome = 'OK'
                              AND audit.time < %(before)s
                       )
                   AND NOT EXISTS (
                           SELECT
                             FROM item
                            WHERE (item.tenant, item.agent, item.item_id)
                                  = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                              AND item.revision = old_revision.revision
                       )
                   AND NOT EXISTS (
                           SELECT
                             FROM revision AS newer
                            WHERE (newer.tenant, newer.agent, newer.item_id, newer.revision)
                                  = (old_revision.tenant, old_revision.agent, old_revision.item_id, old_revision.revision + 1)
                       )
                   )
                OR ( -- expired, and a new item has replaced its row
                       old_revision.expire_time < %(before)s
                   AND NOT EXISTS (
                           SELECT
                             FROM item
                            WHERE (item.tenant, item.agent, item.item_id)
                                  = (old_revision.tenant, old_revision.agent, old_revision.item_id)
                       )
                   )
               )
           )
 RETURNING old_revision.tenant, old_revision.agent, octet_length(old_revision.content) AS bytes
),
forgotten AS (
    SELECT old_item.tenant, old_item.agent, (old_item.delete_time IS NULL)::integer AS items, (old_item.kind = 4)::integer AS versions,
           CASE WHEN old_item.kind = 4 THEN old_item.bytes ELSE 0 END AS bytes
      FROM old_item
     UNION ALL
    SELECT old_revision.tenant, old_revision.agent, 0, 1, old_revision.bytes
      FROM old_revision
),
freed AS (
    INSERT INTO storage AS freed (tenant, agent, change_id, items, versions, bytes)
    SELECT forgotten.tenant, forgotten.agent, gen_random_uuid(), -sum(forgotten.items), -sum(forgotten.versions), -sum(forgotten.bytes)
      FROM forgotten
     GROUP BY forgotten.tenant, forgotten.agent
),
purged AS (
    SELECT old_item.tenant, old_item.agent FROM old_item
     UNION
    SELECT old_revision.tenant, old_revision.agent FROM old_revision
),
cleared AS ( -- the texts may have contributed to the centers of lists
    UPDATE embedding_list AS cleared
       SET signs   = NULL,
           version = cleared.version + 1
      FROM purged
     WHERE (cleared.tenant, cleared.agent) = (purged.tenant, purged.agent)
       AND (%(kind)s::smallint IS NULL OR cleared.kind = %(kind)s)
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, kind, reason)
    SELECT purged.tenant, gen_random_uuid(), purged.agent, %(number)s, 'purge', 'OK', %(kind)s, 'by ' || %(login)s::text
      FROM purged
)
SELECT (SELECT count(*) FROM old_item) AS items, (SELECT count(*) FROM old_revision) AS revisions,
       array_agg(purged.tenant) AS tenants, array_agg(purged.agent) AS agents
  FROM purged;

-- name: clear_centers_of_purged
-- Clear the centers of agents again after a purge: one computed meanwhile may include a purged text.
UPDATE embedding_list AS cleared
   SET signs   = NULL,
       version = cleared.version + 1
  FROM unnest(%(tenants)s::bigint[], %(agents)s::bigint[]) AS purged (tenant, agent)
 WHERE (cleared.tenant, cleared.agent) = (purged.tenant, purged.agent)
   AND (%(kind)s::smallint IS NULL OR cleared.kind = %(kind)s);

-- name: purge_sessions
-- Remove a batch of a tenant's sessions, or of those of one agent, that were closed or expired before a time, in the order of
-- their ids. No open one, whatever the time. Conversations stay, which keep the taint, and audit rows. Each audit row names
-- its agent, since whoever reads it must reach the ceiling of that.
WITH old_session AS (
    SELECT session.session_id
      FROM vault.session
     WHERE session.tenant = %(tenant)s
       AND session.session_id > %(last_session)s
       AND least(session.close_time, session.expire_time) < least(%(before)s, vault.clock())
       AND (%(agent)s::bigint IS NULL OR session.agent = %(agent)s)
       AND session.agent NOT IN (SELECT agent.agent FROM vault.agent WHERE agent.tenant = %(tenant)s AND agent.held)
     ORDER BY session.session_id
     LIMIT %(most)s
       FOR UPDATE SKIP LOCKED
),
purged AS (
    DELETE FROM vault.session AS purged
     USING old_session
     WHERE purged.tenant = %(tenant)s
       AND purged.session_id = old_session.session_id
 RETURNING purged.tenant, purged.agent, purged.session_id, purged.conversation_id, purged.ceiling
),
classified AS (
    SELECT purged.tenant, purged.agent, purged.session_id, conversation.taint
      FROM purged
           JOIN vault.conversation USING (tenant, agent, conversation_id, ceiling)
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, reason)
    SELECT found.tenant, gen_random_uuid(), found.agent, found.taint, 'purge sessions', 'OK', 'by ' || %(login)s::text
      FROM (SELECT DISTINCT classified.tenant, classified.agent, classified.taint FROM classified) AS found
)
SELECT classified.session_id, classified.taint
  FROM classified
 ORDER BY classified.session_id;
