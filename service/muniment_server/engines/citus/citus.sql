-- Statements about a Citus cluster.

-- name: home_of_session
-- `home` in the statements of a session: the row of its agent.
SELECT home.tenant
  FROM shelf AS home
 WHERE home.tenant = %(tenant)s
   AND home.agent = (SELECT session.agent FROM session);

-- name: home_of_host
-- `home` in the statements of a host.
SELECT home.tenant
  FROM vault.tenant AS home
 WHERE home.tenant = %(tenant)s;

-- name: is_cluster
SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL;

-- name: is_coordinator
SELECT pg_dist_local_group.groupid = 0
  FROM pg_dist_local_group;

-- name: knows_password
-- Whether a role can log in, and the nodes have its password.
SELECT EXISTS (
           SELECT
             FROM pg_roles
                  JOIN pg_dist_authinfo ON pg_dist_authinfo.rolename = pg_roles.rolname
            WHERE pg_roles.rolname = %(role)s
              AND pg_roles.rolcanlogin
       );

-- name: owners_password
-- The password with which the nodes log in to each other as the owner, and the verifier of the right one, if it can log in.
SELECT substr(pg_dist_authinfo.authinfo, length('password=') + 1), pg_authid.rolpassword
  FROM pg_authid
       JOIN pg_dist_authinfo ON pg_dist_authinfo.rolename = pg_authid.rolname
 WHERE pg_authid.rolname = %(owner)s
   AND pg_authid.rolcanlogin
   AND pg_authid.rolpassword IS NOT NULL
   AND pg_dist_authinfo.nodeid = 0;

-- name: know_password
-- The statement that stores the password with which nodes log in to each other as a role.
SELECT format(
           'INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, %%L, %%L)'
           || ' ON CONFLICT (rolename, nodeid) DO UPDATE SET authinfo = excluded.authinfo',
           %(role)s::text, 'password=' || %(password)s::text
       );

-- name: roles
-- The statements that create the roles on a worker, as Citus itself does. Without the setting, each worker would create them on the
-- others, too, and they would deadlock.
SELECT format('SELECT CASE set_config(''citus.enable_ddl_propagation'', ''off'', true)'
              || ' WHEN ''off'' THEN worker_create_or_alter_role(%%L, %%L, %%L) END', made.role, 'CREATE ROLE ' || made.attributes, 'ALTER ROLE ' || made.attributes)
  FROM (
           SELECT pg_authid.rolname AS role,
                  format('%%I %%s NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT PASSWORD %%L', pg_authid.rolname,
                         CASE WHEN pg_authid.rolcanlogin THEN 'LOGIN' ELSE 'NOLOGIN' END, pg_authid.rolpassword) AS attributes
             FROM pg_authid
            WHERE pg_authid.rolname = ANY(%(roles)s)
       ) AS made;

-- name: unknown_roles
-- The statements that register roles as objects of the cluster. Citus does not register those that existed before it.
SELECT format('INSERT INTO pg_dist_object (classid, objid, objsubid) SELECT %%L::regclass, pg_roles.oid, 0 FROM pg_roles'
              || ' WHERE pg_roles.rolname = %%L ON CONFLICT DO NOTHING', 'pg_authid', pg_roles.rolname)
  FROM pg_roles
 WHERE pg_roles.rolname = ANY(%(roles)s)
   AND pg_roles.oid NOT IN (SELECT pg_dist_object.objid FROM pg_dist_object WHERE pg_dist_object.classid = 'pg_authid'::regclass);

-- name: grants_on_views
-- The grants on views, which Citus does not propagate to the workers on which it creates the views.
SELECT format('GRANT %%s%%s ON %%s TO %%I', acl.privilege_type, granted.columns, granted.view, pg_get_userbyid(acl.grantee))
  FROM (
           SELECT pg_class.oid::regclass AS view, '' AS columns, pg_class.relacl AS acl, pg_class.relowner
             FROM pg_class
            WHERE pg_class.relkind = 'v'
            UNION ALL
           SELECT pg_class.oid::regclass, format(' (%%I)', pg_attribute.attname), pg_attribute.attacl, pg_class.relowner
             FROM pg_class
                  JOIN pg_attribute ON pg_attribute.attrelid = pg_class.oid
            WHERE pg_class.relkind = 'v'
       ) AS granted
       CROSS JOIN LATERAL aclexplode(granted.acl) AS acl
 WHERE pg_get_userbyid(granted.relowner) = %(owner)s
   AND acl.grantee <> granted.relowner;

-- name: grants_on_system_columns
-- The grants on columns like ctid, which Citus omits where it creates a table or a shard. With shards: those that the table and
-- all of its shards on this node have.
WITH placed AS (
    SELECT pg_dist_partition.logicalrelid AS name, pg_dist_partition.logicalrelid::oid AS relation
      FROM pg_dist_partition
     UNION ALL
    SELECT pg_dist_shard.logicalrelid, shard.relation
      FROM pg_dist_shard
           CROSS JOIN LATERAL (
               SELECT to_regclass(format('%%s_%%s', pg_dist_shard.logicalrelid, pg_dist_shard.shardid))::oid AS relation
           ) AS shard
     WHERE shard.relation IS NOT NULL
       AND %(shards)s
)
SELECT format('GRANT %%s (%%I) ON %%s TO %%I', acl.privilege_type, pg_attribute.attname, placed.name, pg_get_userbyid(acl.grantee))
  FROM placed
       JOIN pg_class ON pg_class.oid = placed.name
       JOIN pg_attribute ON pg_attribute.attrelid = placed.relation
       CROSS JOIN LATERAL aclexplode(pg_attribute.attacl) AS acl
 WHERE pg_attribute.attnum < 0
   AND pg_get_userbyid(pg_class.relowner) = %(owner)s
 GROUP BY placed.name, pg_attribute.attname, acl.privilege_type, acl.grantee
HAVING count(*) = (SELECT count(*) FROM placed AS other WHERE other.name = placed.name);

-- name: closed_functions
-- The statements that make large objects inaccessible, as far as they have been run on this node.
SELECT format('REVOKE EXECUTE ON FUNCTION %%s FROM PUBLIC', pg_proc.oid::regprocedure)
  FROM pg_proc
 WHERE pg_proc.pronamespace = 'pg_catalog'::regnamespace
   AND pg_proc.proname ~ '^(lo_|loread$|lowrite$)'
   AND NOT has_function_privilege('public', pg_proc.oid, 'EXECUTE');

-- name: owners_functions
-- The statements that let only the owner, as which nodes act on each other, execute Citus's functions for its own metadata, and
-- those that connect to a host that the caller names: for those that have been run on this node, or for those that have not.
-- The control role runs commands on nodes, since it verifies grants. `policies` in grants.sql has the same functions.
SELECT format(made.statement, pg_proc.oid::regprocedure, made.role)
  FROM pg_proc
       CROSS JOIN (
           VALUES (1, 'REVOKE EXECUTE ON FUNCTION %%1$s FROM PUBLIC', ''), (2, 'GRANT EXECUTE ON FUNCTION %%1$s TO %%2$I', %(owner)s::text),
                  (3, 'GRANT EXECUTE ON FUNCTION %%1$s TO %%2$I', %(control)s::text)
       ) AS made (step, statement, role)
 WHERE (
           pg_proc.pronamespace = to_regnamespace('citus_internal')
        OR (pg_proc.pronamespace = 'pg_catalog'::regnamespace AND pg_proc.proname ~
               '^citus_internal_|^(citus|master)_unmark_object_distributed$|^citus_check_c|^fetch_intermediate_results$|^master_run_on_worker$')
       )
   AND has_function_privilege('public', pg_proc.oid, 'EXECUTE') <> %(closed)s
   AND (made.step < 3 OR pg_proc.proname = 'master_run_on_worker')
 ORDER BY made.step;

-- name: undistributed
-- The tables that exist only on this node, each with those that its foreign keys refer to.
SELECT pg_class.oid::regclass::text,
       ARRAY(
           SELECT pg_constraint.confrelid::regclass::text
             FROM pg_constraint
            WHERE pg_constraint.conrelid = pg_class.oid
              AND pg_constraint.contype = 'f'
       )
  FROM pg_class
 WHERE pg_class.relkind = 'r'
   AND pg_get_userbyid(pg_class.relowner) = %(owner)s
   AND pg_class.relnamespace <> 'public'::regnamespace
   AND pg_class.oid NOT IN (SELECT pg_dist_partition.logicalrelid FROM pg_dist_partition)
   AND NOT EXISTS ( -- a shard on this node
           SELECT
             FROM pg_dist_shard
            WHERE to_regclass(format('%%s_%%s', pg_dist_shard.logicalrelid, pg_dist_shard.shardid)) = pg_class.oid
       )
 ORDER BY pg_class.oid::regclass::text;

-- name: propagate_schemas
-- The statements that have Citus create on all nodes the schemas and the text search configurations that were made before the
-- extension: it does so for a table that needs them, even if the table is dropped again.
WITH schema AS (
    SELECT pg_namespace.oid, pg_namespace.nspname || '.carrier' AS carrier
      FROM pg_namespace
     WHERE pg_get_userbyid(pg_namespace.nspowner) = %(owner)s
       AND pg_namespace.nspname <> 'public'
)
SELECT made.statement
  FROM (
           SELECT 1 AS step, format('CREATE TABLE %%s (word text)', schema.carrier) AS statement
             FROM schema
            UNION ALL
           SELECT 2, format('CREATE INDEX ON %%s USING gin (to_tsvector(%%L::regconfig, word))', schema.carrier,
                            pg_ts_config.oid::regconfig)
             FROM schema
                  JOIN pg_ts_config ON pg_ts_config.cfgnamespace = schema.oid
            UNION ALL
           SELECT 3, format('SELECT create_reference_table(%%L)', schema.carrier)
             FROM schema
            UNION ALL
           SELECT 4, format('DROP TABLE %%s', schema.carrier)
             FROM schema
       ) AS made
 ORDER BY made.step;

-- name: clear_local_rows
-- Remove the rows that a table had on the coordinator before it was distributed: Citus no longer shows them, but keeps them.
SELECT truncate_local_data_after_distributing_table(%(name)s::regclass);

-- name: clear_samples
-- Remove what Postgres has sampled of the rows of tables that have none any more: neither TRUNCATE nor ANALYZE would.
DELETE FROM pg_statistic
 WHERE pg_statistic.starelid = ANY(%(tables)s::text[]::regclass[]::oid[]);

-- name: serving
-- The serving roles that are connected to this database.
SELECT DISTINCT pg_stat_activity.usename::text
  FROM pg_stat_activity
 WHERE pg_stat_activity.datname = current_database()
   AND pg_stat_activity.usename = ANY(%(serving)s)
 ORDER BY pg_stat_activity.usename::text;

-- name: known_nodes
-- Whether the coordinator is known to the other nodes, and how many workers there are.
SELECT count(*) FILTER (WHERE pg_dist_node.groupid = 0) > 0, count(*) FILTER (WHERE pg_dist_node.groupid <> 0)
  FROM pg_dist_node
 WHERE pg_dist_node.isactive;

-- name: limits
-- The settings that would end a long transaction. Three texts, as `facts_of_nodes` needs.
SELECT pg_settings.name, pg_settings.setting, coalesce(pg_settings.unit, '')
  FROM pg_settings
 WHERE pg_settings.name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
   AND pg_settings.setting <> '0';

-- name: distribute
SELECT create_distributed_table(%(name)s::regclass, 'tenant', colocate_with => %(with)s);

-- name: make_reference_table
SELECT create_reference_table(%(name)s::regclass);

-- name: rows_as_json
-- With casts, because an array of a name and texts would have names, which are cut off after 63 bytes.
SELECT coalesce(jsonb_agg(to_jsonb(ARRAY[found.a::text, found.b::text, found.c::text])), '[]')
  FROM ({}) AS found (a, b, c);

-- name: statements_as_json
SELECT coalesce(jsonb_agg(found.statement), '[]')
  FROM ({}) AS found (statement);

-- name: workers
SELECT pg_dist_node.nodename || ':' || pg_dist_node.nodeport
  FROM pg_dist_node
 WHERE pg_dist_node.groupid <> 0
   AND pg_dist_node.isactive
   AND pg_dist_node.noderole = 'primary';

-- name: on_workers
SELECT ran.success, ran.result, format('%%s:%%s', pg_dist_node.nodename, pg_dist_node.nodeport) AS node
  FROM run_command_on_workers(%(command)s) AS ran
       JOIN pg_dist_node ON (pg_dist_node.nodename, pg_dist_node.nodeport) = (ran.nodename, ran.nodeport)
 WHERE pg_dist_node.groupid <> 0;

-- name: on_all_nodes
-- give_warning_for_connection_errors: for a node that is away there is a row without success, and no error.
SELECT ran.success, ran.result, format('%%s:%%s', pg_dist_node.nodename, pg_dist_node.nodeport) AS node
  FROM run_command_on_all_nodes(%(command)s, give_warning_for_connection_errors := true) AS ran
       JOIN pg_dist_node ON pg_dist_node.nodeid = ran.nodeid;

-- name: may_run_commands
-- Whether the current role may run commands on the nodes.
SELECT coalesce(
           has_function_privilege(
               to_regprocedure('pg_catalog.master_run_on_worker(text[], integer[], text[], boolean)')::oid, 'EXECUTE'
           ), TRUE
       );

-- name: has_function
-- Whether there is the function with which the other roles ask the nodes for their epochs.
SELECT EXISTS (
           SELECT
             FROM pg_proc
            WHERE pg_proc.pronamespace = to_regnamespace('vault')
              AND pg_proc.proname = 'epochs_of_nodes'
              AND pg_proc.prosrc = %(body)s
       );

-- name: ask_for_epochs
SELECT node.node_group, node.epoch
  FROM vault.epochs_of_nodes() AS node;

-- name: epochs_of_nodes
-- The system and the timeline of each worker that answers, by its group. A standby writes no timeline.
SELECT pg_dist_node.groupid::text, ran.result
  FROM run_command_on_workers($$
           SELECT jsonb_build_object(
                      'system', (SELECT control.system_identifier::text FROM pg_control_system() AS control),
                      'timeline', CASE WHEN pg_is_in_recovery() THEN 0
                                       ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END
                  )
       $$) AS ran
       JOIN pg_dist_node ON (pg_dist_node.nodename, pg_dist_node.nodeport) = (ran.nodename, ran.nodeport)
 WHERE pg_dist_node.groupid <> 0
   AND ran.success;

-- name: lock_against_writes
-- The statement that makes writes wait, on all nodes, until the transaction ends. Citus locks a table wherever statements about
-- it may come from. Reads go on, and so does another dump.
SELECT format('LOCK TABLE %s IN SHARE MODE', string_agg(pg_dist_partition.logicalrelid::text, ', '
                                                        ORDER BY pg_dist_partition.logicalrelid::text))
  FROM pg_dist_partition;

-- name: unfinished_writes
-- How many tables and shards of this node are being written, also by transactions that are prepared, but not yet committed.
SELECT count(*)
  FROM pg_locks
       JOIN pg_database ON pg_database.oid = pg_locks.database
       JOIN pg_class ON pg_class.oid = pg_locks.relation
 WHERE pg_database.datname = current_database()
   AND pg_class.relkind = 'r' -- VACUUM has this lock on indexes
   AND pg_get_userbyid(pg_class.relowner) = %(owner)s
   AND pg_locks.mode = 'RowExclusiveLock'
   AND pg_locks.granted;

-- name: strange_transactions
-- Whose transactions are prepared on this node for more than 5 minutes, or by others than Citus, and how many.
SELECT pg_prepared_xacts.owner, count(*), ''
  FROM pg_prepared_xacts
 WHERE pg_prepared_xacts.database = current_database()
   AND (pg_prepared_xacts.gid NOT LIKE 'citus\_%%' OR pg_prepared_xacts.prepared < now() - interval '5 minutes')
 GROUP BY pg_prepared_xacts.owner
 ORDER BY pg_prepared_xacts.owner;

-- name: recover_transactions
-- Commit or roll back on the nodes what the coordinator has prepared there, and has since committed or rolled back.
SELECT recover_prepared_transactions();

-- name: use_one_connection_to_each_node
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true);

-- name: on_this_node_alone
SELECT set_config('citus.enable_ddl_propagation', 'off', true);
