-- How `muniment doctor --deep` checks every relation of the database, as the administrator.

-- name: make_amcheck
-- In the transaction of the check, which is rolled back. It stays where it is if the database has it.
CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA pg_catalog;

-- name: use_amcheck
-- Find the functions of amcheck by their unqualified names until the end of the transaction.
SELECT set_config('search_path', quote_ident(namespace.nspname) || ', pg_catalog', true)
  FROM pg_extension AS extension
       JOIN pg_namespace AS namespace
            ON namespace.oid = extension.extnamespace
 WHERE extension.extname = 'amcheck';

-- name: relations
-- What amcheck can check: tables, those of long values, and indexes. Before version 18, none of kind gin.
SELECT relation.oid, namespace.nspname || '.' || relation.relname AS name, method.amname AS method
  FROM pg_class AS relation
       JOIN pg_namespace AS namespace
            ON namespace.oid = relation.relnamespace
       JOIN pg_am AS method
            ON method.oid = relation.relam
       LEFT JOIN pg_index AS index
            ON index.indexrelid = relation.oid
 WHERE relation.relkind IN ('r', 't', 'm', 'i')
   AND relation.relpersistence = 'p'
   AND coalesce(index.indisvalid AND index.indisready, TRUE)
   AND (method.amname IN ('heap', 'btree') OR (method.amname = 'gin' AND to_regproc('gin_index_check') IS NOT NULL))
 ORDER BY relation.oid;

-- name: check_heap
-- The first damage of a table.
SELECT damage.msg
  FROM verify_heapam(%(relation)s::oid::regclass, on_error_stop => TRUE, check_toast => TRUE) AS damage
 LIMIT 1;

-- name: check_btree
-- No damage, or an error. Each row of the table must be in the index.
SELECT NULL
  FROM bt_index_check(%(relation)s::oid::regclass, TRUE);

-- name: check_gin
-- No damage, or an error.
SELECT NULL
  FROM gin_index_check(%(relation)s::oid::regclass);
