-- What the eraser may delete at this level: the rows of deleted agents. It sees no name and no content.

SET LOCAL search_path = muniment_{level};

CREATE VIEW erasable_item WITH (security_barrier = true) AS
SELECT item.ctid AS address, item.tenant, item.agent, item.item_id
  FROM item
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (item.tenant, item.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW erasable_revision WITH (security_barrier = true) AS
SELECT revision.ctid AS address, revision.tenant, revision.agent, revision.item_id, revision.revision
  FROM revision
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (revision.tenant, revision.agent)
              AND agent.delete_time IS NOT NULL
       );

-- Embeddings go with their chunks.
CREATE VIEW erasable_chunk WITH (security_barrier = true) AS
SELECT chunk.ctid AS address, chunk.tenant, chunk.agent, chunk.kind, chunk.sample
  FROM chunk
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (chunk.tenant, chunk.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW erasable_stat WITH (security_barrier = true) AS
SELECT stat.ctid AS address, stat.tenant, stat.agent, stat.kind, stat.language, stat.change_id
  FROM stat
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (stat.tenant, stat.agent)
              AND agent.delete_time IS NOT NULL
       );

GRANT SELECT, DELETE ON erasable_item, erasable_revision, erasable_chunk, erasable_stat TO muniment_eraser;
