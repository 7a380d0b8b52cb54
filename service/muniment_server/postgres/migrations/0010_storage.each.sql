-- How much each agent stores at this level, which its limits bound.
-- oldest server: 8

SET LOCAL search_path = muniment_{level};

-- A row for each change, folded now and then. No foreign key, which would double the time of a row: the eraser deletes it.
CREATE TABLE storage (
    tenant    bigint   NOT NULL,
    agent     bigint   NOT NULL,
    change_id uuid     NOT NULL, -- of the change, or of the folding
    items     bigint   NOT NULL, -- not deleted; also those that have expired
    versions  bigint   NOT NULL, -- revisions and passages, also of deleted items
    bytes     bigint   NOT NULL, -- of their contents
    fence     smallint NOT NULL DEFAULT 0, -- UPDATE on it is the right to lock
    PRIMARY KEY (tenant, agent, change_id)
);

-- Contents with what each version and its index take beside them: an English corpus of 5,340 chunks took four fifths of this.
CREATE VIEW storage_size WITH (security_invoker = true) AS
SELECT storage.tenant, storage.agent, storage.items, storage.bytes + 256 * storage.versions AS bytes
  FROM storage
 UNION ALL
SELECT stat.tenant, stat.agent, 0, 1500 * stat.chunks + 20 * stat.stems + 20 * stat.grams
  FROM stat;

CREATE VIEW erasable_storage WITH (security_barrier = true) AS
SELECT storage.ctid AS address, storage.tenant, storage.agent, storage.change_id
  FROM storage
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (storage.tenant, storage.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE OR REPLACE VIEW agent WITH (security_barrier = true) AS
SELECT session.tenant, session.session_id, agent.agent_id, agent.language,
       agent.memory_enabled, agent.user_profile_enabled, agent.memory_char_limit, agent.user_char_limit,
       agent.max_items, agent.max_bytes, agent.max_revisions
  FROM session
       JOIN vault.agent USING (tenant, agent);

INSERT INTO storage (tenant, agent, change_id, items, versions, bytes)
SELECT counted.tenant, counted.agent, gen_random_uuid(), sum(counted.items), sum(counted.versions), sum(counted.bytes)
  FROM (
           SELECT item.tenant, item.agent, (item.delete_time IS NULL)::integer AS items, (item.kind = 4)::integer AS versions,
                  CASE WHEN item.kind = 4 THEN octet_length(item.content) ELSE 0 END AS bytes
             FROM item
            UNION ALL
           SELECT revision.tenant, revision.agent, 0, 1, octet_length(revision.content)
             FROM revision
       ) AS counted
 GROUP BY counted.tenant, counted.agent;

GRANT SELECT, INSERT, DELETE, UPDATE (fence) ON storage TO muniment_{level};
GRANT SELECT ON storage_size TO muniment_{level};
GRANT SELECT ON storage, storage_size TO muniment_control;
GRANT SELECT (tenant, agent, chunks, stems, grams) ON stat TO muniment_control;
GRANT SELECT, DELETE ON erasable_storage TO muniment_eraser;
-- The blocks that hosts make are PUBLIC.
GRANT INSERT ON muniment_public.storage TO muniment_control;
