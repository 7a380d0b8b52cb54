-- Lists of embeddings that are alike, so that a search among many reads the nearest lists instead of all signs.
-- Older servers would leave an erased text in the centers of lists: none may go on.

SET LOCAL search_path = muniment_{level};

CREATE TABLE embedding_list (
    tenant     bigint   NOT NULL,
    agent      bigint   NOT NULL,
    kind       smallint NOT NULL,
    level      smallint NOT NULL DEFAULT {number} CONSTRAINT embedding_list_is_{level} CHECK (level = {number}),
    embedder   smallint NOT NULL,
    number     integer  NOT NULL CONSTRAINT no_other_level_has_the_number CHECK (number % 4 = {number} % 4),
    signs      bit(384), -- the center: the signs that most embeddings of the list have. Null: every search reads the list
    version    integer  NOT NULL DEFAULT 0, -- how often the center was computed or cleared
    is_retired boolean  NOT NULL DEFAULT FALSE, -- its embeddings move to newer lists
    PRIMARY KEY (tenant, agent, kind, embedder, number),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

-- An embedding without a list is read by every search.
ALTER TABLE meaning
  ADD COLUMN list integer,
  ADD CONSTRAINT list_exists FOREIGN KEY (tenant, agent, kind, embedder, list) REFERENCES embedding_list;
DROP INDEX meaning_signs;
CREATE INDEX meaning_signs ON meaning (tenant, agent, kind, embedder, list) INCLUDE (signs, name, level, change_id, piece)
 WHERE embedder IS NOT NULL;

-- Each level may read its own lists, and those of the levels below.
DO $$
DECLARE
    levels text[] := ARRAY['muniment_public', 'muniment_internal', 'muniment_confidential', 'muniment_restricted'];
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['meaning', 'embedding_list'] LOOP
        EXECUTE format('CREATE OR REPLACE VIEW visible_%s WITH (security_invoker = true) AS ', name)
             || (SELECT string_agg(format('SELECT * FROM %s.%s', each.level, name), ' UNION ALL ' ORDER BY each.number)
                   FROM unnest(levels[:{number}]) WITH ORDINALITY AS each (level, number));
    END LOOP;
    EXECUTE 'GRANT SELECT ON embedding_list TO ' || array_to_string(levels[{number}:], ', ');
END
$$;

-- What is erased must not remain in the centers that were computed from it.
CREATE VIEW erasing_embedding_list WITH (security_barrier = true) AS
SELECT embedding_list.tenant, embedding_list.agent, embedding_list.kind, embedding_list.embedder, embedding_list.number,
       embedding_list.signs, embedding_list.version
  FROM embedding_list
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind)
                  = (embedding_list.tenant, embedding_list.agent, embedding_list.kind)
              AND erasure.ceiling >= {number}
       );

GRANT INSERT, DELETE, UPDATE (signs, version, is_retired) ON embedding_list TO muniment_{level};
GRANT UPDATE (list) ON meaning TO muniment_{level};
GRANT SELECT ON visible_embedding_list TO muniment_{level};
GRANT SELECT (tenant, agent, kind, embedder, number, version), UPDATE (signs, version)
   ON erasing_embedding_list TO muniment_eraser;
