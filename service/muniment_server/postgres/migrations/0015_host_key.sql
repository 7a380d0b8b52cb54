-- Host keys may expire, and be for one service only. Servers that do not know that would go on to accept them.

ALTER TABLE vault.host_key
  ADD COLUMN expire_time  timestamptz,
  ADD COLUMN only_service text;

-- The keys that are valid now.
CREATE VIEW muniment_control.host_key WITH (security_invoker = true) AS
SELECT host_key.tenant, host_key.host_key_id, host_key.key_hash, host_key.ceiling, host_key.only_service
  FROM vault.host_key
 WHERE host_key.revoke_time IS NULL
   AND host_key.freeze_time IS NULL
   AND (host_key.expire_time IS NULL OR host_key.expire_time > vault.clock());

GRANT SELECT ON muniment_control.host_key TO muniment_control;
