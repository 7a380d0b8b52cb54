-- oldest server: 8
-- What the eraser may see and delete of live agents at this level, by the orders of hosts: names, tags and sizes, and no content.

SET LOCAL search_path = muniment_{level};

CREATE VIEW erasing_item WITH (security_barrier = true) AS
SELECT item.tenant, item.agent, item.kind, item.name, item.item_id, item.revision, item.change_id, item.tags,
       item.delete_time, octet_length(item.content) AS bytes,
       0 AS fence -- UPDATE on it is the right to lock
  FROM item
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (item.tenant, item.agent, item.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_revision WITH (security_barrier = true) AS
SELECT revision.tenant, revision.agent, revision.kind, revision.name, revision.item_id, revision.revision, revision.tags,
       octet_length(revision.content) AS bytes
  FROM revision
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (revision.tenant, revision.agent, revision.kind)
              AND erasure.ceiling >= {number}
       );

-- Embeddings go with their chunks.
CREATE VIEW erasing_chunk WITH (security_barrier = true) AS
SELECT chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id, chunk.language, chunk.stem_count, chunk.gram_count
  FROM chunk
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (chunk.tenant, chunk.agent, chunk.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_stat WITH (security_barrier = true) AS
SELECT stat.tenant, stat.agent, stat.kind, stat.language, stat.change_id, stat.chunks, stat.stems, stat.grams
  FROM stat
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (stat.tenant, stat.agent, stat.kind)
              AND erasure.ceiling >= {number}
       )
  WITH CHECK OPTION;

CREATE VIEW erasing_storage WITH (security_barrier = true) AS
SELECT storage.tenant, storage.agent, storage.change_id, storage.items, storage.versions, storage.bytes
  FROM storage
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent) = (storage.tenant, storage.agent)
              AND erasure.ceiling >= {number}
       )
  WITH CHECK OPTION;

-- Embeddings of other passages that include the text of an erased one are made again without it.
CREATE VIEW erasing_embedding WITH (security_barrier = true) AS
SELECT meaning.tenant, meaning.agent, meaning.kind, meaning.prior, meaning.embedder, meaning.signs, meaning.vector
  FROM meaning
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (meaning.tenant, meaning.agent, meaning.kind)
              AND erasure.ceiling >= {number}
       );

GRANT SELECT, DELETE, UPDATE (fence) ON erasing_item TO muniment_eraser;
GRANT SELECT, DELETE ON erasing_revision, erasing_chunk TO muniment_eraser;
GRANT INSERT ON erasing_stat, erasing_storage TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, prior), UPDATE (prior, embedder, signs, vector) ON erasing_embedding TO muniment_eraser;
