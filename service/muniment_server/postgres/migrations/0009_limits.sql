-- What the sessions of an agent may take: see domain/limits.py for the defaults.
-- oldest server: 8

ALTER TABLE vault.agent
  ADD COLUMN calls_per_second integer NOT NULL DEFAULT 2000,
  ADD COLUMN max_items        bigint  NOT NULL DEFAULT 1000000,
  ADD COLUMN max_bytes        bigint  NOT NULL DEFAULT 4294967296,
  ADD COLUMN max_revisions    integer NOT NULL DEFAULT 100000;

GRANT UPDATE (calls_per_second, max_items, max_bytes, max_revisions) ON vault.agent TO muniment_control;
