-- What agents keep: nothing of one on hold is erased or purged, and items may expire by default. '0' means that they do not.
-- See domain/limits.py.

ALTER TABLE vault.agent
  ADD COLUMN held        boolean  NOT NULL DEFAULT FALSE,
  ADD COLUMN memory_ttl  interval NOT NULL DEFAULT '0',
  ADD COLUMN passage_ttl interval NOT NULL DEFAULT '0',
  ADD CONSTRAINT ttls_are_not_negative CHECK (memory_ttl >= '0' AND passage_ttl >= '0'),
  ADD CONSTRAINT held_agents_stay CHECK (NOT held OR delete_time IS NULL);

GRANT UPDATE (memory_ttl, passage_ttl) ON vault.agent TO muniment_control;
