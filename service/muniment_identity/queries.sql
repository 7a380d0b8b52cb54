-- Identities, as the control role.

-- name: list_identities
-- The host keys of all tenants that stand for identities, but for revoked ones.
SELECT host_key.tenant, encode(host_key.key_hash, 'hex') AS key_hash, host_key.issuer, host_key.audience, host_key.subject,
       host_key.keys
  FROM vault.host_key
 WHERE host_key.issuer IS NOT NULL
   AND host_key.revoke_time IS NULL
 ORDER BY host_key.tenant, host_key.host_key_id;
