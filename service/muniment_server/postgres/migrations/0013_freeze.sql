-- Operators freeze the host keys of a tenant for a while. Servers that do not know that would go on to accept them.

ALTER TABLE vault.host_key ADD COLUMN freeze_time timestamptz;
