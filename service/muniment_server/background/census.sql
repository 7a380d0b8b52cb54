-- What the metrics say of the database, as the control role.

-- name: sessions
-- The open sessions by level.
SELECT session.taint AS level, count(*) AS number
  FROM session
 GROUP BY session.taint;

-- name: agents
-- How many agents are live, and how many are deleted but not yet erased.
SELECT count(*) FILTER (WHERE agent.delete_time IS NULL) AS live,
       count(*) FILTER (WHERE agent.delete_time IS NOT NULL) AS deleted
  FROM vault.agent;

-- name: tenants
-- Their names, also of those that have stored nothing: they call all the same.
SELECT tenant.tenant, tenant.name
  FROM vault.tenant;

-- name: stored
-- What is stored, by tenant and level.
SELECT stored.tenant, stored.level, sum(stored.bytes)::bigint AS bytes
  FROM (
           SELECT size.tenant, 1 AS level, size.bytes
             FROM muniment_public.storage_size AS size
            UNION ALL
           SELECT size.tenant, 2, size.bytes
             FROM muniment_internal.storage_size AS size
            UNION ALL
           SELECT size.tenant, 3, size.bytes
             FROM muniment_confidential.storage_size AS size
            UNION ALL
           SELECT size.tenant, 4, size.bytes
             FROM muniment_restricted.storage_size AS size
       ) AS stored
 GROUP BY stored.tenant, stored.level;

-- name: checksum_failures
-- How often a page with a wrong checksum was read, of this database or of what all databases share. Null without checksums.
SELECT sum(database.checksum_failures)::bigint AS number
  FROM pg_stat_database AS database
 WHERE database.datid = 0
    OR database.datname = current_database();
