-- Which tenants a server has, as the control role or the owner.

-- name: known_tenants
-- All that have a row.
SELECT tenant.tenant
  FROM vault.tenant;

-- name: numbers
-- The numbers that it gives to new tenants.
SELECT sequence.seqmin AS lowest, sequence.seqmax AS highest
  FROM pg_sequence AS sequence
 WHERE sequence.seqrelid = 'vault.tenant_tenant_seq'::regclass;
