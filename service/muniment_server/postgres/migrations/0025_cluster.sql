-- oldest server: 23
-- What views with the caller's rights need on a cluster, see on_cluster.sql: columns that a level's role may lock, and a level
-- that row policies compare. Elsewhere nothing reads them. Older servers open sessions without a level: only the highest sees those.

ALTER TABLE vault.conversation
  ADD COLUMN fence smallint NOT NULL DEFAULT 0; -- UPDATE on it is the right to lock

ALTER TABLE vault.session
  ADD COLUMN level smallint NOT NULL DEFAULT 4 CONSTRAINT level_is_a_level CHECK (level BETWEEN 1 AND 4), -- at which it was opened, for good
  ADD COLUMN fence smallint NOT NULL DEFAULT 0; -- UPDATE on it is the right to lock
