-- Whether the chunk of a new embedding exists was looked up in this index, until Postgres had statistics: it read all chunks of the
-- agent for each. With a condition that only the search for samples states, nothing else can use it.
-- Searches by older servers would read all chunks of an agent: none may go on.

SET LOCAL search_path = muniment_{level};

DROP INDEX chunk_sample;
CREATE INDEX chunk_sample ON chunk (tenant, agent, kind, sample) WHERE start >= 0;
