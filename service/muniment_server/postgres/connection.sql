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

-- name: epoch
-- The system that the server belongs to, and the timeline that it writes. Any role may ask; not on a standby.
SELECT (SELECT control.system_identifier::text FROM pg_control_system() AS control) AS system,
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint AS timeline;

-- name: set_statement_timeout
SELECT set_config('statement_timeout', %(milliseconds)s, false);

-- name: apply_settings
SELECT set_config(setting.name, setting.value, false)
  FROM unnest(%(names)s::text[], %(settings)s::text[]) AS setting (name, value);

-- name: settings
-- What the settings are now, in the order in which they are asked for.
SELECT array_agg(current_setting(asked.name) ORDER BY asked.position) AS settings
  FROM unnest(%(names)s::text[]) WITH ORDINALITY AS asked (name, position);

-- name: lift_idle_timeout
-- Let this transaction be idle without a limit.
SELECT set_config('idle_in_transaction_session_timeout', '0', true);

-- name: login
-- Who has logged in. The nodes of a cluster only know the role that reached them, so audit rows get this as a value.
SELECT session_user::text AS login;

-- name: backend
SELECT pg_backend_pid() AS process;
