-- oldest server: 25
-- The list of an embedding tells roughly what its text was about. It goes when the embedding does.

SET LOCAL search_path = muniment_{level};

CREATE OR REPLACE VIEW erasing_embedding WITH (security_barrier = true) AS
SELECT meaning.tenant, meaning.agent, meaning.kind, meaning.prior, meaning.embedder, meaning.signs, meaning.vector, meaning.list
  FROM meaning
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (meaning.tenant, meaning.agent, meaning.kind)
              AND erasure.ceiling >= {number}
       );

GRANT UPDATE (list) ON erasing_embedding TO muniment_eraser;

UPDATE meaning
   SET list = NULL
 WHERE embedder IS NULL
   AND list IS NOT NULL;
