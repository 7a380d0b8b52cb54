-- Statements about the connection itself.

-- name: who_am_i
SELECT current_user AS role, session_user AS login, current_schema() AS schema,
       pg_role.rolsuper OR pg_role.rolbypassrls OR pg_role.rolcreaterole OR pg_role.rolcreatedb OR pg_role.rolreplication
       AS too_powerful,
       pg_is_in_recovery() AS is_standby
  FROM pg_catalog.pg_roles AS pg_role
 WHERE pg_role.rolname = current_user;

-- name: answer
SELECT;

-- name: set_statement_timeout
SELECT set_config('statement_timeout', %(milliseconds)s, false);
