-- A host key may be bound to untrusted sessions. Older servers would let it open trusted ones: none may go on.

ALTER TABLE vault.host_key
  ADD COLUMN trusted boolean NOT NULL DEFAULT TRUE, -- whether it may open trusted sessions
  ADD CONSTRAINT untrusted_keys_are_for_sessions CHECK (trusted OR only_service IS NOT DISTINCT FROM 'SessionService');

CREATE OR REPLACE VIEW muniment_control.host_key WITH (security_invoker = true) AS
SELECT host_key.tenant, host_key.host_key_id, host_key.key_hash, host_key.ceiling, host_key.only_service, host_key.trusted
  FROM vault.host_key
 WHERE host_key.revoke_time IS NULL
   AND host_key.freeze_time IS NULL
   AND (host_key.expire_time IS NULL OR host_key.expire_time > vault.clock());
