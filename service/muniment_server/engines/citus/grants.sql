-- name: policies
-- Row policies, and the tables on which they are in force; what is always 0; and who may execute Citus's functions for its own
-- metadata, and those that connect to a host that the caller names. As (subject, object, fact).
WITH relation AS (
    SELECT pg_class.oid, pg_class.relrowsecurity, pg_class.relforcerowsecurity, pg_namespace.nspname || '.' || pg_class.relname AS object
      FROM pg_catalog.pg_class
           JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
     WHERE pg_namespace.nspname = 'vault'
        OR pg_namespace.nspname LIKE 'muniment\_%%'
)
SELECT CASE reader.role WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(reader.role) END, relation.object,
       concat_ws(' ', CASE WHEN pg_policy.polpermissive THEN 'rows' ELSE 'only rows' END, nullif(pg_policy.polcmd, '*'),
                 pg_get_expr(pg_policy.polqual, pg_policy.polrelid), 'with check ' || pg_get_expr(pg_policy.polwithcheck, pg_policy.polrelid))
  FROM relation
       JOIN pg_catalog.pg_policy ON pg_policy.polrelid = relation.oid
       CROSS JOIN LATERAL unnest(pg_policy.polroles) AS reader (role)
 UNION ALL
SELECT 'row security', relation.object, 'enabled'
  FROM relation
 WHERE relation.relrowsecurity
 UNION ALL
SELECT 'row security', relation.object, 'forced'
  FROM relation
 WHERE relation.relforcerowsecurity
 UNION ALL
SELECT 'pinned', relation.object, pg_get_constraintdef(pg_constraint.oid)
  FROM relation
       JOIN pg_catalog.pg_constraint ON pg_constraint.conrelid = relation.oid
 WHERE pg_constraint.conname ~ '^fence_is_empty(_\d+)?$'
   AND pg_constraint.convalidated
 UNION ALL
SELECT serving.role, 'function ' || pg_proc.oid::regprocedure, 'EXECUTE'
  FROM unnest(%(serving)s::text[]) AS serving (role)
       JOIN pg_catalog.pg_proc
         ON has_function_privilege(serving.role, pg_proc.oid, 'EXECUTE')
        AND (
                pg_proc.pronamespace = to_regnamespace('citus_internal')
             OR (pg_proc.pronamespace = 'pg_catalog'::regnamespace AND pg_proc.proname ~
                    '^citus_internal_|^(citus|master)_unmark_object_distributed$|^citus_check_c|^fetch_intermediate_results$|^master_run_on_worker$')
            );

-- name: risky_settings
-- Settings with which a node could lose writes, or would log statements: Citus sends it some that contain their values.
-- fsync and full_page_writes cannot be set for a database. Unless the database must be durable, writes may be lost.
SELECT pg_settings.name || ' is ' || pg_settings.setting AS fault,
       CASE WHEN pg_settings.name LIKE 'log\_%%' THEN 'statements that contain stored text would be logged'
            ELSE 'an acknowledged write could be lost' END AS risk,
       CASE WHEN pg_settings.name IN ('fsync', 'full_page_writes') THEN 'turn it on in that node''s configuration'
            WHEN pg_settings.name = 'synchronous_commit' THEN 'turn it on with ALTER DATABASE on that node'
            WHEN pg_settings.name = 'log_statement' THEN 'set it to none with ALTER DATABASE on that node'
            WHEN pg_settings.name = 'log_min_error_statement' THEN 'set it to panic with ALTER DATABASE on that node'
            WHEN pg_settings.name = 'log_transaction_sample_rate' THEN 'set it to 0 with ALTER DATABASE on that node'
            ELSE 'set it to -1 with ALTER DATABASE on that node' END AS remedy
  FROM pg_catalog.pg_settings
 WHERE (pg_settings.name, pg_settings.setting) IN (('log_statement', 'mod'), ('log_statement', 'all'))
    OR %(durable)s
   AND (pg_settings.name, pg_settings.setting)
       IN (('fsync', 'off'), ('full_page_writes', 'off'), ('synchronous_commit', 'off'))
    OR pg_settings.name = 'log_min_error_statement' AND pg_settings.setting NOT IN ('log', 'fatal', 'panic')
    OR pg_settings.name IN ('log_min_duration_statement', 'log_min_duration_sample') AND pg_settings.setting <> '-1'
    OR pg_settings.name = 'log_transaction_sample_rate' AND pg_settings.setting <> '0';
