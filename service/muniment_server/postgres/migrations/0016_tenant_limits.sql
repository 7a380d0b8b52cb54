-- What the hosts of a tenant may give to its agents together. NULL is no limit. No session is refused by it.

ALTER TABLE vault.tenant
  ADD COLUMN max_agents       bigint,
  ADD COLUMN calls_per_second bigint,
  ADD COLUMN max_items        bigint,
  ADD COLUMN max_bytes        bigint,
  ADD COLUMN fence            smallint NOT NULL DEFAULT 0; -- UPDATE on it is the right to lock

GRANT SELECT, UPDATE (fence) ON vault.tenant TO muniment_control;
