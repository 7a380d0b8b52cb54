-- Tenants, for their operator.

-- name: lock_tenants
LOCK TABLE vault.tenant IN SHARE ROW EXCLUSIVE MODE;

-- name: skip_tenant_numbers
-- Give no later tenant one of these numbers. Those outside the range of this server are ignored: no tenant gets them here.
SELECT setval('vault.tenant_tenant_seq', greatest(numbers.last_value, given.tenant))
  FROM vault.tenant_tenant_seq AS numbers
       JOIN pg_sequence AS sequence
            ON sequence.seqrelid = 'vault.tenant_tenant_seq'::regclass
       JOIN unnest(%(tenants)s::bigint[]) AS given (tenant)
            ON given.tenant BETWEEN sequence.seqmin AND least(sequence.seqmax, sequence.seqmin + %(range)s - 1)
 ORDER BY given.tenant;

-- name: create_tenant
INSERT INTO vault.tenant AS tenant (name)
VALUES (%(name)s)
RETURNING tenant.tenant;

-- name: list_tenant_names
SELECT tenant.name
  FROM vault.tenant
 ORDER BY tenant.tenant;

-- name: list_moving
-- The tenants that are moving to another server, or from one, and so are not served here.
SELECT tenant.name AS tenant, tenant.moving_to, tenant.moving_from
  FROM vault.tenant
 WHERE tenant.moving_to IS NOT NULL
    OR tenant.moving_from IS NOT NULL
 ORDER BY tenant.name;

-- name: is_moving
-- Whether a tenant is moving to another server, or from one. The lock is one that a new host key takes anyway.
SELECT tenant.moving_to IS NOT NULL OR tenant.moving_from IS NOT NULL AS is_moving
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s
   FOR KEY SHARE;

-- name: get_tenant_limits
SELECT tenant.name AS tenant, tenant.max_agents, tenant.calls_per_second, tenant.max_items, tenant.max_bytes, tenant.release_approvals
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s;

-- name: set_tenant_limits
-- Set what is not null, with an audit row; -1 removes a limit.
WITH limited AS (
    UPDATE vault.tenant AS limited
       SET max_agents       = nullif(coalesce(%(max_agents)s, limited.max_agents), -1),
           calls_per_second = nullif(coalesce(%(calls_per_second)s, limited.calls_per_second), -1),
           max_items        = nullif(coalesce(%(max_items)s, limited.max_items), -1),
           max_bytes        = nullif(coalesce(%(max_bytes)s, limited.max_bytes), -1),
           release_approvals = coalesce(%(release_approvals)s, limited.release_approvals)
     WHERE limited.tenant = %(tenant)s
 RETURNING limited.tenant
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, method, outcome, reason)
SELECT limited.tenant, gen_random_uuid(), 4, 'tenant limits', 'OK', 'by ' || %(login)s::text
  FROM limited;
