-- What a restore does beside `pg_restore`.

-- name: referenced_tables
-- All tables, each with those that its foreign keys refer to.
SELECT pg_class.oid::regclass::text,
       ARRAY(
           SELECT pg_constraint.confrelid::regclass::text
             FROM pg_constraint
            WHERE pg_constraint.conrelid = pg_class.oid
              AND pg_constraint.contype = 'f'
              AND pg_constraint.confrelid <> pg_class.oid
       )
  FROM pg_class
 WHERE pg_class.relkind = 'r'
   AND pg_get_userbyid(pg_class.relowner) = %(owner)s;

-- name: lock_for_restore
-- Whether this session holds the lock of a restore, which a restore that was killed has lost.
SELECT pg_try_advisory_lock(1919251316);

-- name: end_killed_loads
-- End what the pg_restore of a command that was killed still loads.
SELECT pg_terminate_backend(pg_stat_activity.pid, 10000)
  FROM pg_stat_activity
 WHERE pg_stat_activity.datname = current_database()
   AND pg_stat_activity.application_name = 'pg_restore';
