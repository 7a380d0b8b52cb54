-- What the schema must keep to (reference/statements.md 9): every row is a fault. Run as the owner.
WITH ours AS (
    SELECT pg_class.*, pg_namespace.nspname || '.' || pg_class.relname AS name
      FROM pg_class
           JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
     WHERE pg_namespace.nspname = 'vault'
        OR pg_namespace.nspname LIKE 'muniment\_%'
),
held AS ( -- the tables that belong to tenants
    SELECT *
      FROM ours
     WHERE relkind IN ('r', 'p')
       AND name NOT IN ('vault.tenant', 'vault.migration')
)
SELECT held.name AS what, 'has no tenant that is never null' AS fault
  FROM held
 WHERE NOT EXISTS (
           SELECT
             FROM pg_attribute
            WHERE attrelid = held.oid
              AND attname = 'tenant'
              AND attnotnull
              AND atttypid = 'bigint'::regtype
       )
 UNION ALL
SELECT held.name, 'has no primary key'
  FROM held
 WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = held.oid AND contype = 'p')
 UNION ALL
SELECT held.name, 'has a unique index that does not begin with the tenant'
  FROM held
       JOIN pg_index ON indrelid = held.oid AND indisunique
       JOIN pg_attribute ON attrelid = held.oid AND attnum = indkey[0]
 WHERE attname <> 'tenant'
 UNION ALL
SELECT held.name, 'has an index that does not begin with the tenant'
  FROM held
       JOIN pg_index ON indrelid = held.oid
       JOIN pg_class AS index ON index.oid = indexrelid
       JOIN pg_am ON pg_am.oid = index.relam AND pg_am.amname = 'btree'
       LEFT JOIN pg_attribute ON attrelid = held.oid AND attnum = indkey[0]
 WHERE attname IS DISTINCT FROM 'tenant'
 UNION ALL
SELECT held.name, 'has a foreign key that does not begin with the tenant at both ends'
  FROM held
       JOIN pg_constraint ON conrelid = held.oid AND contype = 'f'
       JOIN pg_attribute AS near ON near.attrelid = conrelid AND near.attnum = conkey[1]
       JOIN pg_attribute AS far ON far.attrelid = confrelid AND far.attnum = confkey[1]
 WHERE near.attname <> 'tenant'
    OR far.attname <> 'tenant'
 UNION ALL
SELECT held.name, 'has a foreign key that sets null or a default'
  FROM held
       JOIN pg_constraint ON conrelid = held.oid AND contype = 'f'
 WHERE confdeltype IN ('n', 'd')
    OR confupdtype IN ('n', 'd', 'c')
 UNION ALL
SELECT ours.name, 'has a trigger'
  FROM ours
       JOIN pg_trigger ON tgrelid = ours.oid AND NOT tgisinternal
 UNION ALL
SELECT ours.name, 'has a rule'
  FROM ours
       JOIN pg_rewrite ON ev_class = ours.oid AND rulename <> '_RETURN'
 UNION ALL
SELECT ours.name, 'has row-level security'
  FROM ours
 WHERE relrowsecurity
    OR EXISTS (SELECT FROM pg_policy WHERE polrelid = ours.oid)
 UNION ALL
SELECT held.name, 'has an exclusion constraint'
  FROM held
       JOIN pg_constraint ON conrelid = held.oid AND contype = 'x'
 UNION ALL
SELECT held.name, 'has a volatile default: ' || pg_get_expr(adbin, adrelid)
  FROM held
       JOIN pg_attrdef ON adrelid = held.oid
       JOIN pg_depend ON pg_depend.classid = 'pg_attrdef'::regclass AND pg_depend.objid = pg_attrdef.oid
            AND pg_depend.refclassid = 'pg_proc'::regclass
       JOIN pg_proc ON pg_proc.oid = pg_depend.refobjid AND provolatile = 'v'
 UNION ALL
SELECT held.name, 'has a default that draws from a sequence or makes an id'
  FROM held
       JOIN pg_attrdef ON adrelid = held.oid
 WHERE pg_get_expr(adbin, adrelid) ~ '(nextval|random|uuid)'
 UNION ALL
SELECT held.name, 'numbers its rows'
  FROM held
       JOIN pg_attribute ON attrelid = held.oid AND attidentity <> ''
 UNION ALL
SELECT ours.name, 'is a window with rights of its owner and none of those that may'
  FROM ours
 WHERE relkind = 'v'
   AND NOT coalesce('security_invoker=true' = ANY(reloptions), false)
   AND NOT ((relname IN ('session', 'agent', 'link', 'conversation', 'deleted_item') OR ours.name = 'muniment_eraser.host_key' OR relname LIKE 'erasable\_%' OR relname LIKE 'erasing\_%') AND coalesce('security_barrier=true' = ANY(reloptions), false))
 UNION ALL
SELECT ours.name, 'is a window that somebody may write: ' || acl.privilege_type
  FROM ours
       CROSS JOIN LATERAL aclexplode(relacl) AS acl
 WHERE relkind = 'v'
   AND acl.privilege_type NOT IN ('SELECT')
   AND acl.grantee <> relowner
   AND NOT ( -- the eraser deletes through views that show the rows of deleted agents, or what a host erases, only
           acl.grantee = 'muniment_eraser'::regrole
           AND (
                   acl.privilege_type = 'DELETE'
                   AND (ours.name LIKE 'muniment\_eraser.%' OR relname LIKE 'erasable\_%' OR relname LIKE 'erasing\_%')
                   OR acl.privilege_type = 'INSERT' AND relname IN ('erasing_stat', 'erasing_storage') AND 'check_option=cascaded' = ANY(reloptions)
               )
       )
   AND NOT ( -- a level's role moves the deleted rows of its own level back
           acl.privilege_type = 'DELETE'
           AND relname = 'deleted_item'
           AND acl.grantee = relnamespace::regnamespace::text::regrole
       )
 UNION ALL
SELECT ours.name, 'is a window with a write to a column other than its fence: ' || attname
  FROM ours
       JOIN pg_attribute ON attrelid = ours.oid
       CROSS JOIN LATERAL aclexplode(attacl) AS acl
 WHERE relkind = 'v'
   AND (acl.privilege_type, attname) <> ('UPDATE', 'fence')
   AND NOT (acl.grantee = 'muniment_eraser'::regrole AND relname IN ('erasing_embedding', 'erasing_embedding_list')) -- clears them, and reads no vector
 UNION ALL
SELECT ours.name, 'has INSERT on columns'
  FROM ours
       JOIN pg_attribute ON attrelid = ours.oid
       CROSS JOIN LATERAL aclexplode(attacl) AS acl
 WHERE acl.privilege_type = 'INSERT'
 UNION ALL
SELECT held.name, 'lets a key be updated: ' || attname
  FROM held
       JOIN pg_attribute ON attrelid = held.oid
       CROSS JOIN LATERAL aclexplode(attacl) AS acl
 WHERE acl.privilege_type = 'UPDATE'
   AND attname IN ('tenant', 'agent', 'kind', 'name', 'level', 'session_id', 'conversation_id', 'token_hash', 'agent_id')
   AND NOT (held.name = 'vault.agent' AND attname = 'agent_id' AND acl.grantee = 'muniment_control'::regrole) -- DeleteAgent frees the id
 UNION ALL
SELECT held.name, 'does not pin its level'
  FROM held
 WHERE EXISTS (SELECT FROM pg_attribute WHERE attrelid = held.oid AND attname = 'level')
   AND NOT EXISTS (
           SELECT
             FROM pg_constraint
                  JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY(conkey) AND attname = 'level'
            WHERE conrelid = held.oid
              AND contype = 'c'
              AND convalidated
       )
 UNION ALL
SELECT held.name, 'compares a name by a collation of its locale: ' || attname
  FROM held
       JOIN pg_attribute ON attrelid = held.oid
       JOIN pg_collation ON pg_collation.oid = attcollation
 WHERE attname IN ('name', 'label', 'agent_id', 'conversation_id', 'thread')
   AND collname <> 'C'
 UNION ALL
SELECT held.name, 'cuts texts short: ' || attname
  FROM held
       JOIN pg_attribute ON attrelid = held.oid
 WHERE atttypid IN ('varchar'::regtype, 'bpchar'::regtype)
 UNION ALL
SELECT held.name, 'has a time without a zone: ' || attname
  FROM held
       JOIN pg_attribute ON attrelid = held.oid
 WHERE atttypid = 'timestamp'::regtype
 UNION ALL
SELECT held.name, 'is not durable'
  FROM held
 WHERE relpersistence <> 'p'
 UNION ALL
SELECT ours.name, 'has a default of a clock that tests cannot replace'
  FROM ours
       JOIN pg_attrdef ON adrelid = ours.oid
 WHERE ours.name <> 'vault.migration'
   AND pg_get_expr(adbin, adrelid) ~* '(now\(|current_timestamp|clock_timestamp)'
 ORDER BY 1, 2;
