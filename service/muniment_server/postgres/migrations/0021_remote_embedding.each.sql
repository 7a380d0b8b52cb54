-- Embeddings by a model at an address, beside those of the built-in model. A chunk has one for each such model.
-- Older servers would leave the text of a deleted turn in them: none may go on.

SET LOCAL search_path = muniment_{level};

CREATE TABLE remote_embedding (
    tenant     bigint   NOT NULL,
    agent      bigint   NOT NULL,
    kind       smallint NOT NULL,
    name       text COLLATE "C" NOT NULL,
    level      smallint NOT NULL DEFAULT {number} CONSTRAINT remote_embedding_is_{level} CHECK (level = {number}),
    change_id  uuid     NOT NULL,
    number     integer  NOT NULL, -- which chunk
    model      integer  NOT NULL, -- derived from the name of the model and its dimensions: all its vectors have the same length
    is_missing boolean  NOT NULL, -- made after the chunk was found without one. While any waits, the agent is searched with the built-in model
    prior_name text COLLATE "C", -- the turn before, if its text is in the vector
    signs      bit varying, -- of the vector's components. Null: it waits for its vector
    vector     smallint[],
    PRIMARY KEY (tenant, agent, kind, name, change_id, number, model),
    FOREIGN KEY (tenant, agent, kind, name, change_id, number)
        REFERENCES meaning (tenant, agent, kind, name, change_id, piece) ON DELETE CASCADE,
    CONSTRAINT remote_embedding_waits_or_is_whole CHECK (num_nulls(signs, vector) IN (0, 2))
);
CREATE INDEX remote_embedding_waiting ON remote_embedding (tenant, agent, kind, model, name, change_id, number)
 WHERE signs IS NULL AND NOT is_missing;
CREATE INDEX remote_embedding_missing ON remote_embedding (tenant, agent, kind, model, name, change_id, number)
 WHERE signs IS NULL AND is_missing;
CREATE INDEX remote_embedding_prior ON remote_embedding (tenant, agent, kind, prior_name) WHERE prior_name IS NOT NULL;
-- All that a comparison of the signs of one agent's chunks needs: it reads no vectors.
CREATE INDEX remote_embedding_signs ON remote_embedding (tenant, agent, kind, model) INCLUDE (signs, name, level, change_id, number)
 WHERE signs IS NOT NULL;

GRANT SELECT, INSERT, DELETE, UPDATE (prior_name, signs, vector) ON remote_embedding TO muniment_{level};

-- Embeddings of other passages that include the text of an erased one go with it.
CREATE VIEW erasing_remote_embedding WITH (security_barrier = true) AS
SELECT remote_embedding.tenant, remote_embedding.agent, remote_embedding.kind, remote_embedding.prior_name
  FROM remote_embedding
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind)
                  = (remote_embedding.tenant, remote_embedding.agent, remote_embedding.kind)
              AND erasure.ceiling >= {number}
       );

GRANT SELECT, DELETE ON erasing_remote_embedding TO muniment_eraser;
