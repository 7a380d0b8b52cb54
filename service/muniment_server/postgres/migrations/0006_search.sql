-- Stemmers that keep small words, and the windows on what search finds. The search column of items goes.

-- Search weighs small words less, but does not drop them: so each configuration has a twin in vault without stop words.
DO $$
DECLARE
    language text;
BEGIN
    FOREACH language IN ARRAY ARRAY[
        'english', 'arabic', 'armenian', 'basque', 'catalan', 'danish', 'dutch', 'finnish', 'french', 'german', 'greek', 'hindi',
        'hungarian', 'indonesian', 'irish', 'italian', 'lithuanian', 'nepali', 'norwegian', 'portuguese', 'romanian', 'russian',
        'serbian', 'simple', 'spanish', 'swedish', 'tamil', 'turkish', 'yiddish'
    ] LOOP
        EXECUTE format('CREATE TEXT SEARCH CONFIGURATION vault.%1$I (COPY = pg_catalog.%1$I)', language);
        IF language <> 'simple' THEN
            EXECUTE format('CREATE TEXT SEARCH DICTIONARY vault.%1$I (TEMPLATE = snowball, LANGUAGE = %1$I)', language);
            EXECUTE format('ALTER TEXT SEARCH CONFIGURATION vault.%1$I ALTER MAPPING REPLACE pg_catalog.%2$I WITH vault.%1$I',
                           language, language || '_stem');
            -- other scripts leave what is in Latin letters to the English stemmer
            EXECUTE format('ALTER TEXT SEARCH CONFIGURATION vault.%1$I ALTER MAPPING REPLACE pg_catalog.english_stem WITH vault.english', language);
        END IF;
    END LOOP;
END
$$;

DROP VIEW muniment_public.shared_visible, muniment_public.visible,
          muniment_internal.shared_visible, muniment_internal.visible,
          muniment_confidential.shared_visible, muniment_confidential.visible,
          muniment_restricted.shared_visible, muniment_restricted.visible;

ALTER TABLE muniment_public.item DROP COLUMN search;
ALTER TABLE muniment_internal.item DROP COLUMN search;
ALTER TABLE muniment_confidential.item DROP COLUMN search;
ALTER TABLE muniment_restricted.item DROP COLUMN search;

CREATE VIEW muniment_public.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_public.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_public.link
       JOIN muniment_public.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

-- What search finds of the visible items; shadowed ones too.
CREATE VIEW muniment_public.visible_chunk WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.chunk
       ) AS chunk
 WHERE chunk.expire_time IS NULL
    OR chunk.expire_time > vault.clock();

CREATE VIEW muniment_public.visible_stat WITH (security_invoker = true) AS
SELECT * FROM muniment_public.stat;

CREATE VIEW muniment_public.visible_meaning WITH (security_invoker = true) AS
SELECT * FROM muniment_public.meaning;

GRANT SELECT ON muniment_public.visible, muniment_public.shared_visible, muniment_public.visible_chunk, muniment_public.visible_stat, muniment_public.visible_meaning TO muniment_public;

CREATE VIEW muniment_internal.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
            UNION ALL
           SELECT * FROM muniment_internal.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_internal.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_internal.link
       JOIN muniment_internal.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

-- What search finds of the visible items; shadowed ones too.
CREATE VIEW muniment_internal.visible_chunk WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.chunk
            UNION ALL
           SELECT * FROM muniment_internal.chunk
       ) AS chunk
 WHERE chunk.expire_time IS NULL
    OR chunk.expire_time > vault.clock();

CREATE VIEW muniment_internal.visible_stat WITH (security_invoker = true) AS
SELECT * FROM muniment_public.stat
 UNION ALL
SELECT * FROM muniment_internal.stat;

CREATE VIEW muniment_internal.visible_meaning WITH (security_invoker = true) AS
SELECT * FROM muniment_public.meaning
 UNION ALL
SELECT * FROM muniment_internal.meaning;

GRANT SELECT ON muniment_internal.visible, muniment_internal.shared_visible, muniment_internal.visible_chunk, muniment_internal.visible_stat, muniment_internal.visible_meaning TO muniment_internal;

GRANT SELECT ON muniment_public.chunk, muniment_public.stat, muniment_public.meaning
   TO muniment_internal;

CREATE VIEW muniment_confidential.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
            UNION ALL
           SELECT * FROM muniment_internal.item
            UNION ALL
           SELECT * FROM muniment_confidential.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_confidential.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_confidential.link
       JOIN muniment_confidential.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

-- What search finds of the visible items; shadowed ones too.
CREATE VIEW muniment_confidential.visible_chunk WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.chunk
            UNION ALL
           SELECT * FROM muniment_internal.chunk
            UNION ALL
           SELECT * FROM muniment_confidential.chunk
       ) AS chunk
 WHERE chunk.expire_time IS NULL
    OR chunk.expire_time > vault.clock();

CREATE VIEW muniment_confidential.visible_stat WITH (security_invoker = true) AS
SELECT * FROM muniment_public.stat
 UNION ALL
SELECT * FROM muniment_internal.stat
 UNION ALL
SELECT * FROM muniment_confidential.stat;

CREATE VIEW muniment_confidential.visible_meaning WITH (security_invoker = true) AS
SELECT * FROM muniment_public.meaning
 UNION ALL
SELECT * FROM muniment_internal.meaning
 UNION ALL
SELECT * FROM muniment_confidential.meaning;

GRANT SELECT ON muniment_confidential.visible, muniment_confidential.shared_visible, muniment_confidential.visible_chunk, muniment_confidential.visible_stat, muniment_confidential.visible_meaning TO muniment_confidential;

GRANT SELECT ON muniment_public.chunk, muniment_public.stat, muniment_public.meaning, muniment_internal.chunk, muniment_internal.stat, muniment_internal.meaning
   TO muniment_confidential;

CREATE VIEW muniment_restricted.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
            UNION ALL
           SELECT * FROM muniment_internal.item
            UNION ALL
           SELECT * FROM muniment_confidential.item
            UNION ALL
           SELECT * FROM muniment_restricted.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_restricted.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_restricted.link
       JOIN muniment_restricted.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

-- What search finds of the visible items; shadowed ones too.
CREATE VIEW muniment_restricted.visible_chunk WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.chunk
            UNION ALL
           SELECT * FROM muniment_internal.chunk
            UNION ALL
           SELECT * FROM muniment_confidential.chunk
            UNION ALL
           SELECT * FROM muniment_restricted.chunk
       ) AS chunk
 WHERE chunk.expire_time IS NULL
    OR chunk.expire_time > vault.clock();

CREATE VIEW muniment_restricted.visible_stat WITH (security_invoker = true) AS
SELECT * FROM muniment_public.stat
 UNION ALL
SELECT * FROM muniment_internal.stat
 UNION ALL
SELECT * FROM muniment_confidential.stat
 UNION ALL
SELECT * FROM muniment_restricted.stat;

CREATE VIEW muniment_restricted.visible_meaning WITH (security_invoker = true) AS
SELECT * FROM muniment_public.meaning
 UNION ALL
SELECT * FROM muniment_internal.meaning
 UNION ALL
SELECT * FROM muniment_confidential.meaning
 UNION ALL
SELECT * FROM muniment_restricted.meaning;

GRANT SELECT ON muniment_restricted.visible, muniment_restricted.shared_visible, muniment_restricted.visible_chunk, muniment_restricted.visible_stat, muniment_restricted.visible_meaning TO muniment_restricted;

GRANT SELECT ON muniment_public.chunk, muniment_public.stat, muniment_public.meaning, muniment_internal.chunk, muniment_internal.stat, muniment_internal.meaning, muniment_confidential.chunk, muniment_confidential.stat, muniment_confidential.meaning
   TO muniment_restricted;
