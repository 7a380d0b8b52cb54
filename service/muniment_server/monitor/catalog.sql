-- What the catalog says about the grants. Any role may read it.

-- name: rights
-- Every privilege in the server's schemas, on this database, and by default on later objects, as (subject, object, fact).
WITH schema AS (
    SELECT pg_namespace.oid, pg_namespace.nspname, pg_namespace.nspowner, pg_namespace.nspacl
      FROM pg_catalog.pg_namespace
     WHERE pg_namespace.nspname = 'vault'
        OR pg_namespace.nspname LIKE 'muniment\_%%'
),
relation AS (
    SELECT pg_class.*, schema.nspname || '.' || pg_class.relname AS object
      FROM pg_catalog.pg_class
           JOIN schema ON schema.oid = pg_class.relnamespace
     WHERE pg_class.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
),
granted AS (
    SELECT acl.grantee, relation.object, acl.privilege_type AS fact, relation.relowner AS owner
      FROM relation
           CROSS JOIN LATERAL aclexplode(relation.relacl) AS acl
     UNION ALL
    SELECT acl.grantee, relation.object, acl.privilege_type || ' (' || pg_attribute.attname || ')', relation.relowner
      FROM relation
           JOIN pg_catalog.pg_attribute ON pg_attribute.attrelid = relation.oid
           CROSS JOIN LATERAL aclexplode(pg_attribute.attacl) AS acl
     UNION ALL
    SELECT acl.grantee, 'schema ' || schema.nspname, acl.privilege_type, schema.nspowner
      FROM schema
           CROSS JOIN LATERAL aclexplode(schema.nspacl) AS acl
     UNION ALL
    SELECT acl.grantee, 'function ' || schema.nspname || '.' || pg_proc.proname, acl.privilege_type, pg_proc.proowner
      FROM pg_catalog.pg_proc
           JOIN schema ON schema.oid = pg_proc.pronamespace
           CROSS JOIN LATERAL aclexplode(coalesce(pg_proc.proacl, acldefault('f', pg_proc.proowner))) AS acl
     UNION ALL
    SELECT acl.grantee, 'database', acl.privilege_type, pg_database.datdba
      FROM pg_catalog.pg_database
           CROSS JOIN LATERAL aclexplode(coalesce(pg_database.datacl, acldefault('d', pg_database.datdba))) AS acl
     WHERE pg_database.datname = current_database()
       AND (acl.grantee = 0 OR acl.grantee IN (SELECT pg_roles.oid FROM pg_catalog.pg_roles WHERE pg_roles.rolname = ANY(%(roles)s)))
     UNION ALL
    SELECT acl.grantee, 'every later object of ' || pg_get_userbyid(pg_default_acl.defaclrole), acl.privilege_type,
           pg_default_acl.defaclrole
      FROM pg_catalog.pg_default_acl
           CROSS JOIN LATERAL aclexplode(pg_default_acl.defaclacl) AS acl
     WHERE NOT pg_get_userbyid(pg_default_acl.defaclrole) = ANY(%(serving)s) -- serving roles cannot create anything
       AND (pg_get_userbyid(pg_default_acl.defaclrole) = ANY(%(roles)s)
            OR pg_default_acl.defaclnamespace IN (SELECT schema.oid FROM schema))
     UNION ALL
    SELECT acl.grantee, 'parameter ' || pg_parameter_acl.parname, acl.privilege_type, 10
      FROM pg_catalog.pg_parameter_acl
           CROSS JOIN LATERAL aclexplode(pg_parameter_acl.paracl) AS acl
     WHERE acl.grantee = 0
        OR acl.grantee IN (SELECT pg_roles.oid FROM pg_catalog.pg_roles WHERE pg_roles.rolname = ANY(%(roles)s))
     UNION ALL
    SELECT acl.grantee, 'function ' || pg_namespace.nspname || '.' || pg_proc.proname, acl.privilege_type || ' as its owner',
           pg_proc.proowner
      FROM pg_catalog.pg_proc
           JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_proc.pronamespace
           CROSS JOIN LATERAL aclexplode(coalesce(pg_proc.proacl, acldefault('f', pg_proc.proowner))) AS acl
     WHERE pg_proc.prosecdef
       AND pg_namespace.nspname NOT IN ('pg_catalog', 'information_schema')
       AND (acl.grantee = 0 OR acl.grantee IN (SELECT pg_roles.oid FROM pg_catalog.pg_roles WHERE pg_roles.rolname = ANY(%(roles)s)))
     UNION ALL
    SELECT acl.grantee, 'schema ' || pg_namespace.nspname, acl.privilege_type, pg_namespace.nspowner
      FROM pg_catalog.pg_namespace
           CROSS JOIN LATERAL aclexplode(pg_namespace.nspacl) AS acl
     WHERE pg_namespace.oid NOT IN (SELECT schema.oid FROM schema)
       AND acl.privilege_type = 'CREATE'
       AND (acl.grantee = 0 OR acl.grantee IN (SELECT pg_roles.oid FROM pg_catalog.pg_roles WHERE pg_roles.rolname = ANY(%(roles)s)))
)
SELECT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(granted.grantee) END AS subject, granted.object, granted.fact
  FROM granted
 WHERE granted.grantee <> granted.owner
 UNION ALL
SELECT pg_get_userbyid(pg_db_role_setting.setrole), 'setting', unnest(pg_db_role_setting.setconfig)
  FROM pg_catalog.pg_db_role_setting
 WHERE pg_get_userbyid(pg_db_role_setting.setrole) = ANY(%(roles)s)
 UNION ALL
SELECT pg_get_userbyid(pg_class.relowner), pg_class.relname, 'owns'
  FROM pg_catalog.pg_class
 WHERE pg_get_userbyid(pg_class.relowner) = ANY(%(serving)s);

-- name: preconditions
-- What the privileges depend on: owners, views, pinned levels, triggers, functions, roles, as (subject, object, fact).
WITH schema AS (
    SELECT pg_namespace.oid, pg_namespace.nspname, pg_namespace.nspowner, pg_namespace.nspacl
      FROM pg_catalog.pg_namespace
     WHERE pg_namespace.nspname = 'vault'
        OR pg_namespace.nspname LIKE 'muniment\_%%'
),
relation AS (
    SELECT pg_class.*, schema.nspname || '.' || pg_class.relname AS object
      FROM pg_catalog.pg_class
           JOIN schema ON schema.oid = pg_class.relnamespace
     WHERE pg_class.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
)
SELECT pg_get_userbyid(relation.relowner), relation.object, 'owns'
  FROM relation
 UNION ALL
SELECT pg_get_userbyid(schema.nspowner), 'schema ' || schema.nspname, 'owns'
  FROM schema
 UNION ALL
SELECT 'view', relation.object, unnest(relation.reloptions)
  FROM relation
 WHERE relation.relkind = 'v'
 UNION
SELECT 'view', relation.object, 'reads ' || source_schema.nspname || '.' || source.relname
  FROM relation
       JOIN pg_catalog.pg_rewrite ON pg_rewrite.ev_class = relation.oid
       JOIN pg_catalog.pg_depend ON pg_depend.classid = 'pg_catalog.pg_rewrite'::regclass AND pg_depend.objid = pg_rewrite.oid
       JOIN pg_catalog.pg_class AS source ON pg_depend.refclassid = 'pg_catalog.pg_class'::regclass AND source.oid = pg_depend.refobjid
       JOIN pg_catalog.pg_namespace AS source_schema ON source_schema.oid = source.relnamespace
 WHERE relation.relkind = 'v'
   AND source.oid <> relation.oid
 UNION
SELECT 'view', relation.object, 'where ' || condition.matched[1]
  FROM relation
       CROSS JOIN LATERAL regexp_matches(
           pg_get_viewdef(relation.oid), '(taint = \d|trusted = .|ceiling >= \d|\m[cdfr][a-z]+_time IS (?:NOT )?NULL|expire_time > vault\.clock\(\))', 'g'
       ) AS condition (matched)
 WHERE relation.relkind = 'v'
 UNION ALL
SELECT 'view', stranger_schema.nspname || '.' || stranger.relname, 'reads ' || relation.object
  FROM relation
       JOIN pg_catalog.pg_depend ON pg_depend.refclassid = 'pg_catalog.pg_class'::regclass AND pg_depend.refobjid = relation.oid
       JOIN pg_catalog.pg_rewrite ON pg_depend.classid = 'pg_catalog.pg_rewrite'::regclass AND pg_rewrite.oid = pg_depend.objid
       JOIN pg_catalog.pg_class AS stranger ON stranger.oid = pg_rewrite.ev_class
       JOIN pg_catalog.pg_namespace AS stranger_schema ON stranger_schema.oid = stranger.relnamespace
 WHERE stranger.relnamespace NOT IN (SELECT schema.oid FROM schema)
 UNION
SELECT 'trigger', relation.object, pg_trigger.tgname
  FROM relation
       JOIN pg_catalog.pg_trigger ON pg_trigger.tgrelid = relation.oid
 WHERE NOT pg_trigger.tgisinternal
 UNION ALL
SELECT 'function', schema.nspname || '.' || pg_proc.proname,
       coalesce(pg_get_function_sqlbody(pg_proc.oid), pg_proc.prosrc) || CASE WHEN pg_proc.prosecdef THEN ' as its owner' ELSE '' END
  FROM pg_catalog.pg_proc
       JOIN schema ON schema.oid = pg_proc.pronamespace
 UNION ALL
SELECT 'pinned', relation.object, pg_get_constraintdef(pg_constraint.oid)
  FROM relation
       JOIN pg_catalog.pg_constraint ON pg_constraint.conrelid = relation.oid
       JOIN pg_catalog.pg_attribute ON pg_attribute.attrelid = relation.oid AND pg_attribute.attnum = ANY(pg_constraint.conkey)
 WHERE pg_constraint.contype = 'c'
   AND pg_attribute.attname = 'level'
   AND pg_constraint.convalidated
 UNION ALL
SELECT pg_roles.rolname, 'role', power.name
  FROM pg_catalog.pg_roles
       CROSS JOIN LATERAL (
           VALUES ('superuser', pg_roles.rolsuper), ('bypasses row security', pg_roles.rolbypassrls),
                  ('creates roles', pg_roles.rolcreaterole), ('creates databases', pg_roles.rolcreatedb),
                  ('replicates', pg_roles.rolreplication)
       ) AS power (name, has)
 WHERE pg_roles.rolname = ANY(%(roles)s)
   AND power.has
 UNION ALL
SELECT pg_get_userbyid(pg_auth_members.member), 'role', 'is a member of ' || pg_get_userbyid(pg_auth_members.roleid)
  FROM pg_catalog.pg_auth_members
 WHERE pg_get_userbyid(pg_auth_members.member) = ANY(%(roles)s)
 UNION ALL
SELECT pg_get_userbyid(pg_auth_members.member), 'role', 'is a member of ' || pg_get_userbyid(pg_auth_members.roleid)
  FROM pg_catalog.pg_auth_members
 WHERE pg_get_userbyid(pg_auth_members.roleid) = ANY(%(serving)s)
   AND NOT pg_get_userbyid(pg_auth_members.member) = ANY(%(roles)s)
   AND (SELECT NOT pg_roles.rolsuper AND NOT pg_roles.rolcreaterole FROM pg_catalog.pg_roles WHERE pg_roles.oid = pg_auth_members.member);

-- name: served_tenants
-- The tenants that a server has. One that is moving is in two databases, and neither serves it.
SELECT tenant.tenant
  FROM vault.tenant
 WHERE tenant.moving_to IS NULL
   AND tenant.moving_from IS NULL;

-- name: server
-- The properties that the server and the database must have.
SELECT current_setting('server_version_num')::integer AS server_version,
       pg_is_in_recovery() AS is_standby,
       lower('É') = 'é' AND to_tsvector('simple', 'É') = to_tsvector('simple', 'é') AND 'É' ILIKE 'é' AS folds_case,
       pg_encoding_to_char(pg_database.encoding) = 'UTF8' AS is_utf8,
       current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean
       AND current_setting('synchronous_commit') <> 'off' AS is_durable,
       current_setting('max_connections')::integer AS max_connections
  FROM pg_catalog.pg_database
 WHERE pg_database.datname = current_database();

-- name: schema
-- The newest version, and what its migration recorded for older servers, unless it was that of 0.1.0.
SELECT migration.version,
       coalesce((to_jsonb(migration) ->> 'oldest_server')::integer, migration.version) AS oldest_server,
       ARRAY(SELECT jsonb_array_elements_text(nullif(to_jsonb(migration) -> 'grants', 'null'))) AS grants
  FROM vault.migration
 ORDER BY migration.version DESC
 LIMIT 1;
