-- What the metrics say of the database, as the control role.

-- name: sessions
-- The open sessions by label.
SELECT (2 * session.taint - session.trusted::integer)::smallint AS label, count(*) AS number
  FROM session
 GROUP BY session.taint, session.trusted;

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
-- What is stored, by tenant and label.
SELECT stored.tenant, stored.label, sum(stored.bytes)::bigint AS bytes
  FROM (
           SELECT size.tenant, 1 AS label, size.bytes
             FROM muniment_public_trusted.storage_size AS size
            UNION ALL
           SELECT size.tenant, 2, size.bytes
             FROM muniment_public.storage_size AS size
            UNION ALL
           SELECT size.tenant, 3, size.bytes
             FROM muniment_internal_trusted.storage_size AS size
            UNION ALL
           SELECT size.tenant, 4, size.bytes
             FROM muniment_internal.storage_size AS size
            UNION ALL
           SELECT size.tenant, 5, size.bytes
             FROM muniment_confidential_trusted.storage_size AS size
            UNION ALL
           SELECT size.tenant, 6, size.bytes
             FROM muniment_confidential.storage_size AS size
            UNION ALL
           SELECT size.tenant, 7, size.bytes
             FROM muniment_restricted_trusted.storage_size AS size
            UNION ALL
           SELECT size.tenant, 8, size.bytes
             FROM muniment_restricted.storage_size AS size
       ) AS stored
 GROUP BY stored.tenant, stored.label;

-- name: checksum_failures
-- How often a page with a wrong checksum was read, of this database or of what all databases share. Null without checksums.
SELECT sum(database.checksum_failures)::bigint AS number
  FROM pg_stat_database AS database
 WHERE database.datid = 0
    OR database.datname = current_database();
