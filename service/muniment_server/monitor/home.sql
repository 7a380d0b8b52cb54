-- The relation that the statements of hosts may name besides tables: see scope.sql.

-- name: home
-- The tenant, for steps that read no table of it, only what earlier steps return: on a cluster, they too run where the tenant is.
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.tenant = %(tenant)s;
