-- oldest server: 16
-- Each batch of EraseItems checks that the host key is still valid. DeleteAgent marks agents, and only the eraser deletes them.

CREATE VIEW muniment_eraser.host_key WITH (security_barrier = true) AS
SELECT host_key.tenant, host_key.host_key_id
  FROM vault.host_key
 WHERE host_key.revoke_time IS NULL
   AND host_key.freeze_time IS NULL
   AND (host_key.expire_time IS NULL OR host_key.expire_time > vault.clock());

GRANT SELECT ON muniment_eraser.host_key TO muniment_eraser;
REVOKE DELETE ON vault.agent FROM muniment_control;
