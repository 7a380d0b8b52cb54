-- Until Postgres had statistics, each check that the chunk of a new embedding exists used this index, and read all chunks of the
-- agent. With a condition that only the search for samples states, nothing else can use it. No chunk starts before 0.
-- Searches by older servers would read all chunks of an agent: none may go on.

SET LOCAL search_path = muniment_{level};

DROP INDEX chunk_sample;
CREATE INDEX chunk_sample ON chunk (tenant, agent, kind, sample) WHERE start >= 0;
