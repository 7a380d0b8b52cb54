-- What the settings of the database server leave in its log.

-- name: log_settings
-- The settings that hold for this connection. A setting of a library that is not loaded is left out, even if a file names it:
-- then it is a text whose type is unknown.
SELECT pg_settings.name, pg_settings.setting
  FROM pg_catalog.pg_settings
 WHERE pg_settings.name = ANY(%(names)s)
   AND (pg_settings.vartype <> 'string' OR pg_settings.name NOT IN ('auto_explain.log_min_duration', 'pgaudit.log_parameter'));
